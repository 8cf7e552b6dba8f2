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

/** The address of the page that shows what has an id, or otherwise that of its account. */
export function foundHref(id: string, accountId: string): string {
  switch (/^([a-z]+)_[0-9a-z]{26}$/.exec(id)?.[1]) {
    case "key":
      return keyHref(id);
    case "wh":
      return hrefOf("webhooks", { id, account: accountId });
    case "gen":
    case "resp":
    case "msg":
    case "led":
      return hrefOf("ledger", { entry: id });
    case "top":
      return accountHref(accountId, { tab: "payments" });
    case "evt":
      return accountHref(accountId, { tab: "events" });
    case "fail":
      return accountHref(accountId, { tab: "failures" });
    default:
      return accountHref(accountId);
  }
}
