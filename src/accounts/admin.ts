import type {
  AdjustAccountRequest,
  CreateAccountRequest,
  CreditAccountRequest,
  GetAccountRequest,
  ListAccountsRequest,
  ResumeAccountRequest,
  SetAccountPlanRequest,
  SuspendAccountRequest,
  UpdateAccountRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { type Movement, moveBalance as moveBalanceRow } from "../ledger/store.ts";
import { viewEntry } from "../ledger/views.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import { dateOf } from "../rules/request-values.ts";
import { accountToRead } from "./named-account.ts";
import {
  type AccountSort,
  createAccount as createAccountRow,
  getAccount as getAccountRow,
  listAccounts as listAccountRows,
  readGrants,
  searchAccounts,
  setAccountPlan as setAccountPlanRow,
  setAccountSuspended,
  sortAccounts,
  updateAccount as updateAccountRow,
} from "./store.ts";
import { viewAccount } from "./views.ts";

const DEFAULT_PLAN = "free";

export async function createAccount(deps: Deps, request: CreateAccountRequest, call: ApiCall) {
  const { name, reason, externalId, email, notes } = request;
  const account = { id: deps.ids.account(), name, plan: request.plan || DEFAULT_PLAN };
  const row = await makeLoggedChange(deps, call, { reason, details: { plan: account.plan } }, (action) =>
    createAccountRow(deps.database, action, account, {
      external_id: externalId || undefined,
      email: email || undefined,
      notes: notes || undefined,
    }),
  );
  return { account: viewAccount(row) };
}

export async function getAccount(deps: Deps, request: GetAccountRequest, call: ApiCall) {
  const row = await accountToRead(deps, call, request.accountId);
  const { grants, ...balance } = await readGrants(deps.database, row);
  return { account: viewAccount({ ...row, ...balance }, grants) };
}

export async function listAccounts(deps: Deps, request: ListAccountsRequest) {
  const { rows, nextPageToken } = await accountRows(deps, request);
  return { accounts: rows.map((row) => viewAccount(row)), nextPageToken };
}

async function accountRows({ database }: Deps, request: ListAccountsRequest) {
  const { search, state, balanceBelowMicros: belowMicros } = request;
  const sort = (request.sort || "newest") as AccountSort["sort"];
  if (belowMicros !== undefined && !sort.endsWith("_balance"))
    throw DomainError.ofField("balance_below_micros", "needs the sort lowest_balance or highest_balance");
  const isSorted = sort !== "newest" || state !== "";
  if (search !== "") {
    if (isSorted) throw DomainError.ofField("search", "must be empty for a sort or a state");
    return await searchAccounts(database, search, readPage("accounts", request, [search]));
  }
  if (!isSorted) return await listAccountRows(database, readPage("accounts", request));
  const page = readPage("accounts", request, [sort, state, String(belowMicros ?? "")]);
  return await sortAccounts(database, { sort, state, belowMicros }, page);
}

/** The log has the names of the changed fields: their values may be personal data, which must be removable. */
export async function updateAccount(deps: Deps, request: UpdateAccountRequest, call: ApiCall) {
  const { accountId, reason, name, externalId, email, notes, lowBalanceMicros } = request;
  const given = {
    name,
    external_id: externalId === "" ? null : externalId,
    email,
    notes,
    low_balance_micros: lowBalanceMicros === 0n ? null : lowBalanceMicros,
  };
  const fields = Object.entries(given).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  const row = await makeLoggedChange(deps, call, { target: accountId, reason, details: { fields: fields.join(",") } }, (action) =>
    updateAccountRow(deps.database, action, accountId, given),
  );
  return { account: viewAccount(row) };
}

export async function suspendAccount(deps: Deps, request: SuspendAccountRequest, call: ApiCall) {
  return await setSuspended(deps, request, call, true);
}

export async function resumeAccount(deps: Deps, request: ResumeAccountRequest, call: ApiCall) {
  return await setSuspended(deps, request, call, false);
}

async function setSuspended(
  deps: Deps,
  { accountId, reason }: { readonly accountId: string; readonly reason: string },
  call: ApiCall,
  suspended: boolean,
) {
  const row = await makeLoggedChange(deps, call, { target: accountId, reason }, (action) =>
    setAccountSuspended(deps.database, action, accountId, suspended),
  );
  return { account: viewAccount(row) };
}

export async function setAccountPlan(deps: Deps, request: SetAccountPlanRequest, call: ApiCall) {
  const { accountId, plan, reason } = request;
  const row = await makeLoggedChange(deps, call, { target: accountId, reason, details: { plan } }, (action) =>
    setAccountPlanRow(deps.database, action, accountId, plan),
  );
  return { account: viewAccount(row) };
}

/** Changes a balance for an operator, once per idempotency key. */
export async function moveBalance(
  deps: Deps,
  call: ApiCall,
  kind: Movement["kind"],
  request: Omit<Movement, "entryId" | "kind">,
) {
  const { accountId, amountMicros, reason, idempotencyKey } = request;
  const movement = {
    entryId: deps.ids.entry(laneOfId(accountId)),
    accountId,
    kind,
    amountMicros,
    reason,
    idempotencyKey,
    expiresAt: request.expiresAt,
    isPromotional: request.isPromotional ?? false,
  };
  const details = {
    entry_id: movement.entryId,
    amount_micros: amountMicros,
    expires_at: request.expiresAt?.toISOString(),
    ...(movement.isPromotional && { promotional: "true" }),
  };
  const entry = await makeLoggedChange(deps, call, { target: accountId, reason, details }, (action) =>
    moveBalanceRow(deps.database, action, movement),
  );
  return { account: viewAccount(await getAccountRow(deps.database, accountId)), entry: viewEntry(entry) };
}

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
