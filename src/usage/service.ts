import type { GetUsageRequest as GetAccountUsageRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import { UsageService } from "../../gen/vx/v1/usage_pb.js";
import { accountToRead } from "../accounts/named-account.ts";
import { namesOf } from "../accounts/store.ts";
import { type ApiCall, type Deps, defineService } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { usageFiltersOf, usageQueryOf } from "./request.ts";
import { readAllUsage, readUsage, TooMuchUsage, type UsagePage } from "./sums.ts";
import { viewMargin, viewUsage } from "./views.ts";

export const usageService = defineService(UsageService, {
  getUsage: async ({ database }, request, { key: { accountId } }) => {
    const groups = ["key", "model", "user"] as const;
    const query = await usageQueryOf(database.at(laneOfId(accountId)), request, groups);
    const page = readPage("usage", request, usageFiltersOf(request, ""));
    const { rows, ...rest } = await withUsageLimitError(readUsage(database, accountId, query, page));
    return { rows: rows.map(viewUsage), ...rest };
  },
});

export async function getAccountUsage(deps: Deps, request: GetAccountUsageRequest, call: ApiCall) {
  const { database } = deps;
  const { by, ...range } = await usageQueryOf(database.home, request, ["account", "key", "model", "user", "upstream"]);
  // A key belongs to one account, so this adds no rows.
  const query = { ...range, by: { ...by, account: by.account || by.key } };
  const page = readPage("usage", request, usageFiltersOf(request, request.accountId));
  const read = async (): Promise<UsagePage> => {
    if (request.accountId === "") return { throughSeq: 0n, ...(await readAllUsage(database, query, page)) };
    const { id } = await accountToRead(deps, call, request.accountId);
    return await readUsage(database, id, { ...query, by: { ...query.by, account: true } }, page);
  };
  const { rows, ...rest } = await withUsageLimitError(read());
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
    ...viewMargin(row),
  }));
  return { rows: named, ...rest };
}

/** Turns the error of a query that reads too much into a 400 that names the field. */
async function withUsageLimitError<Result>(reading: Promise<Result>): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof TooMuchUsage)) throw error;
    throw DomainError.ofField("from", "the range has too much usage for one page; choose a later time, or group by hour or day");
  }
}
