import type { GetUsageRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { readPage } from "../../domain/page.ts";
import { findAccount } from "../../store/accounts.ts";
import { readAllUsage } from "../../store/all-usage.ts";
import { namesOf } from "../../store/names-of.ts";
import { readUsage, type UsagePage } from "../../store/usage-sums.ts";
import type { Deps } from "../deps.ts";
import { refusingTooMuch } from "./too-much-usage.ts";
import { usageFiltersOf, usageQueryOf } from "./usage-request.ts";
import { viewUsage } from "./view-usage.ts";

/** The usage of one account or of all accounts, for operators. */
export async function getAccountUsage({ database }: Deps, request: GetUsageRequest) {
  const { by, ...range } = await usageQueryOf(database.home, request, ["account", "key", "model", "user"]);
  // A key belongs to one account, so this adds no rows.
  const query = { ...range, by: { ...by, account: by.account || by.key } };
  const page = readPage("usage", request, usageFiltersOf(request, request.accountId));
  const read = async (): Promise<UsagePage> => {
    if (request.accountId === "") return { throughSeq: 0n, ...(await readAllUsage(database, query, page)) };
    const { id } = await findAccount(database, request.accountId);
    return await readUsage(database, id, { ...query, by: { ...query.by, account: true } }, page);
  };
  const { rows, ...rest } = await refusingTooMuch(read());
  const names = await namesOf(
    database,
    rows.map((row) => row.account_id),
    rows.map((row) => row.key_id),
  );
  const named = rows.map((row) => ({
    accountId: row.account_id,
    accountName: names.get(row.account_id) ?? "",
    keyName: names.get(row.key_id) ?? "",
    usage: viewUsage(row),
  }));
  return { rows: named, ...rest };
}
