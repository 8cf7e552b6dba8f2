import {
  type AdjustAccountRequest,
  AdminService,
  type CreateAccountRequest,
  type CreateKeyRequest,
  type CreditAccountRequest,
  type GetAccountRequest,
  type ListAccountsRequest,
  type ListKeysRequest,
  type ListLedgerEntriesRequest,
  type ListModelsRequest,
  type ListPricesRequest,
  type PutPlanRequest,
  type RevokeKeyRequest,
  type SetAccountPlanRequest,
  type SetKeyLimitRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { unknownModel } from "../billing/refusals.ts";
import { readPage } from "../domain/page.ts";
import { DEFAULT_SCOPES, toScopeBits } from "../domain/scope.ts";
import {
  createAccount as createAccountRow,
  getAccount as getAccountRow,
  listAccounts as listAccountRows,
  setAccountPlan as setAccountPlanRow,
} from "../store/accounts.ts";
import { audit as auditRows } from "../store/audit.ts";
import {
  ANY_ACCOUNT,
  createKey as createKeyRow,
  listKeys as listKeyRows,
  revokeKey as revokeKeyRow,
  setKeyLimit as setKeyLimitRow,
} from "../store/keys.ts";
import { listEntries } from "../store/ledger.ts";
import { listPlans as listPlanRows, putPlan as putPlanRow } from "../store/plans.ts";
import { listPrices as listPriceRows } from "../store/prices.ts";
import type { ApiCall } from "./api-call.ts";
import { defineService } from "./define-service.ts";
import type { Deps } from "./deps.ts";
import { createOperator, listOperators, revokeOperator } from "./manage-operators.ts";
import { moveBalance } from "./move-balance.ts";
import { newKey, scopesOf } from "./new-key.ts";
import { pageOfModels } from "./page-of-models.ts";
import { viewAccount, viewCatalogModel, viewEntry, viewKey, viewPlan, viewPriceVersion } from "./views.ts";

const DEFAULT_PLAN = "free";

export async function createAccount(deps: Deps, request: CreateAccountRequest) {
  const plan = request.plan || DEFAULT_PLAN;
  return {
    account: viewAccount(await createAccountRow(deps.database, deps.ids.account(), request.name, plan)),
  };
}

export async function getAccount(deps: Deps, request: GetAccountRequest) {
  return { account: viewAccount(await getAccountRow(deps.database, request.accountId)) };
}

export async function listAccounts(deps: Deps, request: ListAccountsRequest) {
  const { rows, nextPageToken } = await listAccountRows(deps.database, readPage("accounts", request));
  return { accounts: rows.map(viewAccount), nextPageToken };
}

export async function creditAccount(deps: Deps, request: CreditAccountRequest) {
  return await moveBalance(deps, "credit", request);
}

export async function adjustAccount(deps: Deps, request: AdjustAccountRequest) {
  return await moveBalance(deps, "adjustment", request);
}

export async function listPlans(deps: Deps) {
  return { plans: (await listPlanRows(deps.database)).map(viewPlan) };
}

export async function listModels({ catalog }: Pick<Deps, "catalog">, request: ListModelsRequest) {
  const { rows, nextPageToken } = pageOfModels(catalog, readPage("models", request));
  return { models: rows.map(viewCatalogModel), nextPageToken };
}

/** The model may have been removed from the catalog. */
export async function listPrices({ database, catalog }: Deps, request: ListPricesRequest) {
  const model = catalog.get(request.model)?.id ?? request.model;
  const { rows, nextPageToken } = await listPriceRows(database, model, readPage("prices", request));
  if (rows.length === 0 && request.pageToken === "") throw unknownModel(request.model);
  return { versions: rows.map(viewPriceVersion), nextPageToken };
}

export async function putPlan(deps: Deps, request: PutPlanRequest) {
  const { name, rpm, maxActiveKeys, maxKeysCreatedPerHour } = request;
  const plan = {
    name,
    rpm,
    max_active_keys: maxActiveKeys,
    max_keys_created_per_hour: maxKeysCreatedPerHour,
  };
  return { plan: viewPlan(await putPlanRow(deps.database, plan)) };
}

export async function setAccountPlan(deps: Deps, request: SetAccountPlanRequest) {
  return { account: viewAccount(await setAccountPlanRow(deps.database, request.accountId, request.plan)) };
}

/** Operators may give any scope, any plan, and a limit above the plan's. */
export async function createKey(deps: Deps, request: CreateKeyRequest) {
  const { accountId, plan } = request;
  const scopes = scopesOf(request) ?? toScopeBits(DEFAULT_SCOPES);
  return await newKey(deps, accountId, request, (key, generated) =>
    createKeyRow(deps.database, { ...key, plan, scopes }, generated),
  );
}

/** Throws not_found for an account that does not exist, instead of returning an empty list. */
export async function listKeys(deps: Deps, request: ListKeysRequest) {
  const account = await getAccountRow(deps.database, request.accountId);
  const { rows, nextPageToken } = await listKeyRows(deps.database, account.id, readPage("keys", request));
  return { apiKeys: rows.map(viewKey), nextPageToken };
}

export async function revokeKey(deps: Deps, request: RevokeKeyRequest) {
  return { apiKey: viewKey(await revokeKeyRow(deps.database, ANY_ACCOUNT, request.keyId)) };
}

export async function setKeyLimit(deps: Deps, request: SetKeyLimitRequest) {
  return { apiKey: viewKey(await setKeyLimitRow(deps.database, request.keyId, request.rateLimitRpm)) };
}

export async function listLedgerEntries(deps: Deps, request: ListLedgerEntriesRequest) {
  const account = await getAccountRow(deps.database, request.accountId);
  const { rows, nextPageToken } = await listEntries(deps.database, account.id, readPage("entries", request));
  return { entries: rows.map(viewEntry), nextPageToken };
}

export async function audit(deps: Deps, call: ApiCall) {
  const { findings, ...totals } = await auditRows(deps.database, call.signal);
  return {
    ...totals,
    consistent: findings.length === 0,
    findings: findings.map(({ account_id, rule, detail }) => ({ accountId: account_id, rule, detail })),
  };
}

export const adminService = defineService(AdminService, ({ deps }) => ({
  createAccount: (request) => createAccount(deps, request),
  getAccount: (request) => getAccount(deps, request),
  listAccounts: (request) => listAccounts(deps, request),
  creditAccount: (request) => creditAccount(deps, request),
  adjustAccount: (request) => adjustAccount(deps, request),
  listPlans: () => listPlans(deps),
  listModels: (request) => listModels(deps, request),
  listPrices: (request) => listPrices(deps, request),
  putPlan: (request) => putPlan(deps, request),
  setAccountPlan: (request) => setAccountPlan(deps, request),
  createKey: (request) => createKey(deps, request),
  listKeys: (request) => listKeys(deps, request),
  revokeKey: (request) => revokeKey(deps, request),
  setKeyLimit: (request) => setKeyLimit(deps, request),
  listLedgerEntries: (request) => listLedgerEntries(deps, request),
  createOperator: (request) => createOperator(deps, request),
  listOperators: (request) => listOperators(deps, request),
  revokeOperator: (request) => revokeOperator(deps, request),
  audit: (_, call) => audit(deps, call),
}));
