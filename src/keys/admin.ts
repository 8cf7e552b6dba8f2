import type {
  ListKeysRequest,
  ReportLeakRequest,
  SearchKeysRequest,
  SetKeyLimitRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { accountToRead } from "../accounts/named-account.ts";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { laneOfKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { keyQueryOf } from "../domain/key-query.ts";
import { LANE_COUNT } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import { viewKey } from "./fields.ts";
import {
  listKeys as listKeyRows,
  listUnusedKeys,
  reportLeaks,
  searchKeys as searchKeyRows,
  setKeyLimit as setKeyLimitRow,
} from "./store.ts";

/** Throws not_found for an account that does not exist, instead of returning an empty list. */
export async function listKeys(deps: Deps, request: ListKeysRequest, call: ApiCall) {
  const account = await accountToRead(deps, call, request.accountId);
  const page = readPage("keys", request);
  const { rows, nextPageToken } = await listKeyRows(deps.database, account.id, page, true);
  return { apiKeys: rows.map(viewKey), nextPageToken };
}

export async function searchKeys({ database }: Deps, request: SearchKeysRequest) {
  const text = request.query.trim();
  const query = keyQueryOf(text);
  if (!query) {
    throw DomainError.ofField("query", "must have at least four characters after vx_live_, such as vx_live_abcd");
  }
  const { unusedDays } = request;
  if (unusedDays > 0 && text !== "") throw DomainError.ofField("query", "must be empty for unused keys");
  const { rows, nextPageToken } =
    unusedDays > 0
      ? await listUnusedKeys(database, unusedDays, readPage("keys", request, ["", String(unusedDays)]))
      : await searchKeyRows(database, query, readPage("keys", request, [text]));
  const keys = rows.map((row) => ({
    accountId: row.account_id,
    accountName: row.account_name,
    apiKey: viewKey(row),
  }));
  return { keys, nextPageToken };
}

export async function reportLeak(deps: Deps, request: ReportLeakRequest, call: ApiCall) {
  const { fingerprint, keyStart, url, reason } = request;
  const lane = laneOfKey(keyStart);
  const key = await makeLoggedChange(deps, call, { reason, details: { url } }, async (action) => {
    const [found] = lane < LANE_COUNT ? await reportLeaks(deps.database, action, [{ lane, fingerprint, reason }]) : [];
    if (found) return found;
    throw new DomainError("not_found", { message: "No key of this service has this secret." });
  });
  return { keyId: key.key_id, accountId: key.account_id, revokedKeys: key.revoked_keys };
}

export async function setKeyLimit(deps: Deps, request: SetKeyLimitRequest, call: ApiCall) {
  const { keyId, rateLimitRpm, reason } = request;
  const details = { rate_limit_rpm: rateLimitRpm ?? "default" };
  const row = await makeLoggedChange(deps, call, { target: keyId, reason, details }, (action) =>
    setKeyLimitRow(deps.database, action, keyId, rateLimitRpm),
  );
  return { apiKey: viewKey(row) };
}
