import { hrefOf } from "../shared/use-route.ts";

/** The address of the page of an account, with what it shows. */
export function accountHref(id: string, params: Readonly<Record<string, string>> = {}): string {
  return hrefOf("accounts", { id, ...params });
}
