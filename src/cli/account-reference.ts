import type { CallOptions } from "@connectrpc/connect";
import type { Admin } from "./client.ts";

const ID = /^acct_[0-9a-z]{26}$/;

/** The id of an account that a command names by its id, its external id or its unique name. */
export async function accountIdOf(
  admin: Admin,
  reference: string,
  options: CallOptions = {},
): Promise<string> {
  if (ID.test(reference)) return reference;
  const { account } = await admin.getAccount({ accountId: reference }, options);
  return account?.id ?? "";
}
