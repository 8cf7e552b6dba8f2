import { hrefOf } from "../shared/use-route.ts";

/** The address of the page of an account, with what it shows. */
export function accountHref(id: string, params: Readonly<Record<string, string>> = {}): string {
  return hrefOf("accounts", { id, ...params });
}

/** The address of the page of a key. */
export function keyHref(id: string): string {
  return hrefOf("keys", { id });
}

/** The address of the page of a plan. */
export function planHref(name: string): string {
  return hrefOf("plans", { name });
}

/** The address of what an operator changed; undefined if it has no page. */
export function targetHref(target: string): string | undefined {
  if (target.startsWith("acct_")) return accountHref(target);
  if (target.startsWith("key_")) return keyHref(target);
  if (target.startsWith("op_")) return hrefOf("operators");
  return target === "" ? undefined : planHref(target);
}
