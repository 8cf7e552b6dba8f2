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
  type PutPlanRequest,
  type ReportLeakRequest,
  type RevokeKeyRequest,
  type RotateKeyRequest,
  type SearchKeysRequest,
  type SetKeyLimitRequest,
  type UpdateKeyRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { laneOfKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { keyQueryOf } from "../domain/key-query.ts";
import { LANE_COUNT, laneOfId } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { DEFAULT_SCOPES, fromScopeBits, toScopeBits } from "../domain/scope.ts";
import { namesOf } from "../store/accounts.ts";
import {
  createKey as createKeyRow,
  listKeys as listKeyRows,
  listUnusedKeys,
  reportLeaks,
  revokeKey as revokeKeyRow,
  rotateKey as rotateKeyRow,
  searchKeys as searchKeyRows,
  setKeyLimit as setKeyLimitRow,
  updateKey as updateKeyRow,
} from "../store/keys.ts";
import { findEntries, listFilteredEntries, listRecentEntries as listRecentEntryRows } from "../store/ledger.ts";
import { countPlans, listPlans as listPlanRows, putPlan as putPlanRow } from "../store/plans.ts";
import { closeAccount } from "./close-account.ts";
import { refundEntry, rerate } from "./correct-charges.ts";
import { type ApiCall, type Deps, defineService } from "./define-service.ts";
import { listAllEvents } from "./event-service.ts";
import { countFailuresOfAccount, listFailuresOfAccount } from "./failure-service.ts";
import { detailsOfChanges, keyChangesOf, textOfLimits } from "./key-changes.ts";
import { newKey } from "./key-service.ts";
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
import { makeLoggedChange } from "./operator-action.ts";
import { dateOf } from "./request-values.ts";
import { audit, limitStreams, MAX_LONG_READS } from "./run-audit.ts";
import { getAnyStatement } from "./statement-service.ts";
import { getAnyAutoTopUp, listAllTopUps, putAnyAutoTopUp } from "./top-up-service.ts";
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

/** What a request of an operator or of a member has. */
type Fields<Request> = Omit<Request, "$typeName" | "$unknown">;

/** The database knows what an operator and what a member may give. */
export async function createAccountKey(deps: Deps, request: Fields<CreateKeyRequest>, call: ApiCall) {
  const { accountId, name, plan, rateLimitRpm, reason } = request;
  return await newKey(deps, accountId, request, (key, generated) => {
    const details = {
      name,
      plan,
      scopes: fromScopeBits(key.scopes ?? toScopeBits(DEFAULT_SCOPES)).join(","),
      rate_limit_rpm: rateLimitRpm,
      expires_at: key.expiresAt?.toISOString(),
      models: key.models?.join(","),
      limits: key.limits && textOfLimits(key.limits),
      allowed_cidrs: key.allowedCidrs?.join(","),
    };
    return makeLoggedChange(deps, call, { target: accountId, reason, details }, (action) =>
      createKeyRow(deps.database, action, { ...key, plan }, generated),
    );
  });
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

export async function revokeKey(deps: Deps, request: Fields<RevokeKeyRequest>, call: ApiCall) {
  const { keyId, reason } = request;
  const row = await makeLoggedChange(deps, call, { target: keyId, reason }, (action) =>
    revokeKeyRow(deps.database, action, keyId),
  );
  return { apiKey: viewKey(row) };
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

export async function updateKey(deps: Deps, request: Fields<UpdateKeyRequest>, call: ApiCall) {
  const { keyId, reason } = request;
  const changes = keyChangesOf(deps, request);
  const change = { target: keyId, reason, details: detailsOfChanges(changes) };
  const row = await makeLoggedChange(deps, call, change, (action) => updateKeyRow(deps.database, action, keyId, changes));
  return { apiKey: viewKey(row) };
}

export async function rotateKey(deps: Deps, request: Fields<RotateKeyRequest>, call: ApiCall) {
  const { keyId, overlapSeconds, reason } = request;
  const generated = deps.generateKey(laneOfId(call.actor.accountId ?? keyId));
  const change = { target: keyId, reason, details: { overlap_seconds: overlapSeconds } };
  const row = await makeLoggedChange(deps, call, change, (action) =>
    rotateKeyRow(deps.database, action, keyId, generated, overlapSeconds),
  );
  return { apiKey: viewKey(row), secret: generated.secret };
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
  createKey: ofAccount(createAccountKey),
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
  putAutoTopUp: ofAccount(putAnyAutoTopUp),
  ...webhooksOfOperators,
  listMembers,
  createInvitation: ofAccount(createInvitation),
  createSignUpInvitation,
  removeMember: ofAccount(removeMember),
  viewCustomerPage: ofAccount(viewCustomerPage),
  listOperatorEvents,
  audit,
});

type ChangeOfAccount = { readonly accountId: string; readonly reason: string };

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
