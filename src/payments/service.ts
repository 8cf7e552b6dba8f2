import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AccountTopUpSchema,
  type GetAutoTopUpRequest as GetAnyAutoTopUpRequest,
  type ListTopUpsRequest as ListAllTopUpsRequest,
  type PutAutoTopUpRequest as PutAnyAutoTopUpRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import {
  AutoTopUpSchema,
  type CreateTopUpRequest,
  type GetAutoTopUpRequest,
  type GetTopUpRequest,
  type ListTopUpsRequest,
  type PutAutoTopUpRequest,
  TopUpSchema,
  TopUpService,
} from "../../gen/vx/v1/top_up_pb.js";
import { accountIdToRead } from "../accounts/named-account.ts";
import { namesOf } from "../accounts/store.ts";
import { type ApiCall, type Deps, defineService } from "../api/define-service.ts";
import { viewOf } from "../api/view.ts";
import { DomainError } from "../domain/errors.ts";
import { readPage } from "../domain/page.ts";
import { makeLoggedChange, type WithReason } from "../operators/operator-action.ts";
import type { AutoTopUpRow } from "./auto-top-up-store.ts";
import { topUpsOf } from "./billing-page.ts";
import {
  getTopUp as getTopUpRow,
  listAllTopUps as listAllTopUpRows,
  listTopUps as listTopUpRows,
  type TopUpRow,
} from "./store.ts";
import type { TopUps } from "./top-ups.ts";

/** The payments of the owner of the demo account are simulated on a server that takes none. */
function topUpsFor({ topUps, simulatedTopUps }: Deps, call: ApiCall): TopUps {
  const isDemoOwner = call.actor.kind === "member" && call.member.isDemoOwner;
  return topUpsOf({ topUps: isDemoOwner ? (topUps ?? simulatedTopUps) : topUps });
}

async function createTopUp(deps: Deps, { amountMicros, returnUrl }: CreateTopUpRequest, call: ApiCall) {
  const { accountId } = call.key;
  const change = { target: accountId, details: { amount_micros: amountMicros } };
  return await makeLoggedChange(deps, call, change, async (action) => {
    const topUps = topUpsFor(deps, call);
    checkReturnUrl(returnUrl);
    const order = { accountId, amountMicros, returnUrl, idempotencyKey: call.idempotencyKey, action };
    return { topup: viewTopUp(await topUps.create(order)) };
  });
}

function checkReturnUrl(text: string): void {
  if (text !== "" && !isReturnUrl(text))
    throw DomainError.ofField("return_url", "must be an https URL, or an http URL of this machine");
}

function isReturnUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url?.hostname ?? "");
  return url?.protocol === "https:" || (url?.protocol === "http:" && isLocal);
}

async function getTopUp(deps: Deps, { id }: GetTopUpRequest, call: ApiCall) {
  topUpsFor(deps, call);
  return { topup: viewTopUp(await getTopUpRow(deps.database, call.key.accountId, id)) };
}

async function listTopUps(deps: Deps, request: ListTopUpsRequest, call: ApiCall) {
  topUpsFor(deps, call);
  const { accountId } = call.key;
  const { rows, nextPageToken } = await listTopUpRows(deps.database, accountId, readPage("topups", request));
  return { topups: rows.map(viewTopUp), nextPageToken };
}

async function getAutoTopUp(deps: Deps, _request: GetAutoTopUpRequest, call: ApiCall) {
  return { autoTopup: viewAutoTopUp(await topUpsOf(deps).automatic.get(call.key.accountId)) };
}

type PutRequest = (PutAutoTopUpRequest | PutAnyAutoTopUpRequest) & WithReason & { readonly returnUrl?: string };

/** Operators give no address to return to. */
export async function putAutoTopUp(deps: Deps, accountId: string, request: PutRequest, call: ApiCall) {
  const { returnUrl = "", reason } = request;
  const change = { target: accountId, reason, details: detailsOfAutoTopUp(request) };
  const row = await makeLoggedChange(deps, call, change, (action) => {
    checkReturnUrl(returnUrl);
    return topUpsOf(deps).automatic.put({ ...changeOf(request), accountId, returnUrl, action });
  });
  return { autoTopup: viewAutoTopUp(row) };
}

export async function getAnyAutoTopUp(deps: Deps, request: GetAnyAutoTopUpRequest, call: ApiCall) {
  const accountId = await accountIdToRead(deps, call, request.accountId);
  return { autoTopup: viewAutoTopUp(await topUpsOf(deps).automatic.get(accountId)) };
}

/** The settings for the log. */
function detailsOfAutoTopUp(request: PutRequest) {
  const { enabled, thresholdMicros, amountMicros, monthlyMaxMicros } = request;
  return {
    enabled: String(enabled),
    ...(enabled && {
      threshold_micros: thresholdMicros,
      amount_micros: amountMicros,
      monthly_max_micros: monthlyMaxMicros,
    }),
  };
}

function changeOf(request: PutRequest) {
  const { thresholdMicros, amountMicros, monthlyMaxMicros } = request;
  return {
    isEnabled: request.enabled,
    thresholdMicros,
    amountMicros,
    monthlyMaxMicros,
    replacesMethod: request.replacePaymentMethod,
  };
}

export async function listAllTopUps(deps: Pick<Deps, "database">, request: ListAllTopUpsRequest, call: ApiCall) {
  const { database } = deps;
  const { state, onlyProblems } = request;
  const accountId = await accountIdToRead(deps, call, request.accountId);
  const page = readPage("topups", request, [accountId, state, String(onlyProblems)]);
  const { rows, nextPageToken } =
    accountId === "" ? await listAllTopUpRows(database, page, request) : await listTopUpRows(database, accountId, page, request);
  const names = await namesOf(
    database,
    rows.map((row) => row.account_id),
    [],
  );
  return {
    topups: rows.map((row) =>
      viewOf(AccountTopUpSchema, row, { topup: viewTopUp(row), accountName: names.get(row.account_id) ?? "" }),
    ),
    nextPageToken,
  };
}

function viewTopUp(row: TopUpRow): MessageInitShape<typeof TopUpSchema> {
  return viewOf(TopUpSchema, row, { url: row.state === "pending" ? row.page_url : "", automatic: row.is_automatic });
}

function viewAutoTopUp(row: AutoTopUpRow | undefined): MessageInitShape<typeof AutoTopUpSchema> {
  if (!row) return { state: "off" };
  return viewOf(AutoTopUpSchema, row, {
    enabled: row.is_enabled,
    state: stateOfAutoTopUp(row),
    paymentMethod: row.method,
    setupUrl: row.is_enabled ? row.page_url : "",
    topupId: row.pending_topup_id,
  });
}

function stateOfAutoTopUp(row: AutoTopUpRow): string {
  if (row.pending_topup_id !== "") return "paying";
  if (!row.is_enabled) return "off";
  if (row.method_id === null) return "needs_payment_method";
  return row.month_micros + row.amount_micros > row.monthly_max_micros ? "monthly_max_reached" : "ready";
}

export const topUpService = defineService(TopUpService, {
  createTopUp,
  getTopUp,
  listTopUps,
  getAutoTopUp,
  putAutoTopUp: (deps, request, call) => putAutoTopUp(deps, call.key.accountId, request, call),
});
