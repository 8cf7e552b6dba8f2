import {
  type AdjustAccountRequest,
  AdminService,
  type CreateKeyRequest,
  type CreditAccountRequest,
  type ListKeysRequest,
  type ListLedgerEntriesRequest,
  type ListModelsRequest,
  type ListPlansRequest,
  type ListRecentEntriesRequest,
  type PutAutoTopUpRequest,
  type PutPlanRequest,
  type ReportLeakRequest,
  type SearchKeysRequest,
  type SetKeyLimitRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { laneOfKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { keyQueryOf } from "../domain/key-query.ts";
import { LANE_COUNT } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { namesOf } from "../store/accounts.ts";
import {
  listKeys as listKeyRows,
  listUnusedKeys,
  reportLeaks,
  searchKeys as searchKeyRows,
  setKeyLimit as setKeyLimitRow,
} from "../store/keys.ts";
import { findEntries, listFilteredEntries, listRecentEntries as listRecentEntryRows } from "../store/ledger.ts";
import { countPlans, listPlans as listPlanRows, putPlan as putPlanRow } from "../store/plans.ts";
import { closeAccount } from "./close-account.ts";
import { refundEntry, rerate } from "./correct-charges.ts";
import { type ApiCall, type Deps, defineService } from "./define-service.ts";
import { listAllEvents } from "./event-service.ts";
import { countFailuresOfAccount, listFailuresOfAccount } from "./failure-service.ts";
import { createKey, revokeKey, rotateKey, updateKey } from "./key-service.ts";
import { entryFilterOf } from "./ledger-service.ts";
import { listLimitsOfOwner, removeLimit, setLimit } from "./limit-service.ts";
import {
  createAccount,
  getAccount,
  listAccounts,
  moveBalance,
  resumeAccount,
  setAccountPlan,
  suspendAccount,
  updateAccount,
} from "./manage-accounts.ts";
import { createInvitation, createSignUpInvitation, listMembers, removeMember, viewCustomerPage } from "./manage-members.ts";
import { createOperator, listOperatorEvents, listOperators, revokeOperator, setOperatorRole } from "./manage-operators.ts";
import { listAccountPrices, listPrices, setAccountPrices } from "./manage-prices.ts";
import { pageOfModels } from "./model-service.ts";
import { accountIdToChange, accountToRead } from "./named-account.ts";
import { makeLoggedChange, type WithReason } from "./operator-action.ts";
import { dateOf } from "./request-values.ts";
import { audit, limitStreams, MAX_LONG_READS } from "./run-audit.ts";
import { getAnyStatement } from "./statement-service.ts";
import { getAnyAutoTopUp, listAllTopUps, putAutoTopUp } from "./top-up-service.ts";
import { exportUsage } from "./usage/export.ts";
import { getAccountUsage } from "./usage/service.ts";
import { viewCatalogModel, viewEntry, viewEntryCost, viewKey, viewPlan } from "./views.ts";
import { webhooksOfOperators } from "./webhook-service.ts";

export async function creditAccount(deps: Deps, request: CreditAccountRequest, call: ApiCall) {
  const { accountId, amountMicros, reason, idempotencyKey, expiresAt, promotional: isPromotional } = request;
  return await moveBalance(deps, call, "credit", {
    accountId,
    amountMicros,
    reason,
    idempotencyKey,
    expiresAt: dateOf("expires_at", expiresAt),
    isPromotional,
  });
}

export async function adjustAccount(deps: Deps, request: AdjustAccountRequest, call: ApiCall) {
  const { accountId, amountMicros, reason, idempotencyKey } = request;
  return await moveBalance(deps, call, "adjustment", { accountId, amountMicros, reason, idempotencyKey });
}

export async function listPlans({ database }: Deps, { counts }: ListPlansRequest) {
  const [rows, found] = await Promise.all([listPlanRows(database), counts ? countPlans(database) : undefined]);
  return { plans: rows.map((row) => viewPlan(row, found?.get(row.name))) };
}

export async function listModels({ catalog }: Pick<Deps, "catalog">, request: ListModelsRequest) {
  const { rows, nextPageToken } = pageOfModels(catalog.list(), readPage("models", request));
  return { models: rows.map(viewCatalogModel), nextPageToken };
}

export async function putPlan(deps: Deps, request: PutPlanRequest, call: ApiCall) {
  const { name, rpm, maxActiveKeys, maxKeysCreatedPerHour, reason } = request;
  const limits = {
    rpm,
    max_active_keys: maxActiveKeys,
    max_keys_created_per_hour: maxKeysCreatedPerHour,
  };
  const row = await makeLoggedChange(deps, call, { target: name, reason, details: limits }, (action) =>
    putPlanRow(deps.database, action, { name, ...limits }),
  );
  return { plan: viewPlan(row) };
}

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

export async function listLedgerEntries(deps: Deps, request: ListLedgerEntriesRequest, call: ApiCall) {
  const account = await accountToRead(deps, call, request.accountId);
  const page = readPage("entries", request);
  const { rows, nextPageToken } = await listFilteredEntries(deps.database, account.id, entryFilterOf(request), page);
  const costs = rows.filter(({ kind }) => kind === "generation").map(viewEntryCost);
  return { entries: rows.map(viewEntry), nextPageToken, costs };
}

export async function listRecentEntries({ database }: Deps, request: ListRecentEntriesRequest) {
  const { rows, nextPageToken } =
    request.id === ""
      ? await listRecentEntryRows(database, readPage("recent_entries", request))
      : { rows: await findEntries(database, request.id), nextPageToken: "" };
  const names = await namesOf(
    database,
    rows.map((row) => row.account_id),
    rows.map((row) => row.key_id),
  );
  const entries = rows.map((row) => ({
    accountId: row.account_id,
    accountName: names.get(row.account_id) ?? "",
    keyName: names.get(row.key_id) ?? "",
    entry: viewEntry(row),
    ...(row.kind === "generation" ? { cost: viewEntryCost(row) } : {}),
  }));
  return { entries, nextPageToken };
}

export const adminService = defineService(AdminService, {
  createAccount,
  getAccount,
  listAccounts,
  updateAccount: ofAccount(updateAccount),
  suspendAccount: ofAccount(suspendAccount),
  resumeAccount: ofAccount(resumeAccount),
  closeAccount: ofAccount(closeAccount),
  creditAccount: ofAccount(creditAccount),
  adjustAccount: ofAccount(adjustAccount),
  listPlans,
  listModels,
  listPrices,
  setAccountPrices: ofAccount(setAccountPrices),
  listAccountPrices,
  putPlan,
  setAccountPlan: ofAccount(setAccountPlan),
  createKey: ofAccount((deps, request: CreateKeyRequest, call) => createKey(deps, request.accountId, request, call)),
  listKeys,
  searchKeys,
  revokeKey,
  reportLeak,
  updateKey,
  rotateKey,
  setKeyLimit,
  listLimits: listLimitsOfOwner,
  setLimit,
  removeLimit,
  listLedgerEntries,
  listFailures: listFailuresOfAccount,
  countFailures: countFailuresOfAccount,
  listRecentEntries,
  getUsage: getAccountUsage,
  rerate: limitStreams(MAX_LONG_READS, rerate),
  refundEntry: ofAccount(refundEntry),
  getStatement: getAnyStatement,
  exportUsage: limitStreams(MAX_LONG_READS, exportUsage),
  createOperator,
  listOperators,
  revokeOperator,
  setOperatorRole,
  listEvents: listAllEvents,
  listTopUps: listAllTopUps,
  getAutoTopUp: getAnyAutoTopUp,
  putAutoTopUp: ofAccount((deps, request: PutAutoTopUpRequest, call) => putAutoTopUp(deps, request.accountId, request, call)),
  ...webhooksOfOperators,
  listMembers,
  createInvitation: ofAccount(createInvitation),
  createSignUpInvitation,
  removeMember: ofAccount(removeMember),
  viewCustomerPage: ofAccount(viewCustomerPage),
  listOperatorEvents,
  audit,
});

type ChangeOfAccount = WithReason & { readonly accountId: string };

/** Replaces the account reference of a change by the account's id. */
function ofAccount<Request extends ChangeOfAccount, Response>(
  change: (deps: Deps, request: Request, call: ApiCall) => Promise<Response>,
) {
  return async (deps: Deps, request: Request, call: ApiCall): Promise<Response> => {
    const { reason } = request;
    const accountId = await accountIdToChange(deps, call, request.accountId, { reason });
    return await change(deps, { ...request, accountId }, call);
  };
}
