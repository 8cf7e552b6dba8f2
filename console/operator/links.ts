import { hrefOf } from "../shared/use-route.ts";

/** The address of the page of an account, with what it shows. */
export function accountHref(id: string, params: Readonly<Record<string, string>> = {}): string {
  return hrefOf("accounts", { id, ...params });
}

/** The address of the list of keys, with one key. */
export function keyHref(id: string): string {
  return hrefOf("keys", { query: id });
}
