import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  AccountTopUpSchema,
  ListTopUpsRequest as ListAllTopUpsRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import {
  type CreateTopUpRequest,
  type GetTopUpRequest,
  type ListTopUpsRequest,
  type TopUpSchema,
  TopUpService,
} from "../../gen/vx/v1/top_up_pb.js";
import { DomainError } from "../domain/errors.ts";
import { formatMicros } from "../domain/money.ts";
import { readPage } from "../domain/page.ts";
import type { TopUps } from "../payments/top-ups.ts";
import { accountIdOf } from "../store/accounts.ts";
import {
  getTopUp as getTopUpRow,
  listAllTopUps as listAllTopUpRows,
  listTopUps as listTopUpRows,
  type TopUpRow,
} from "../store/top-ups.ts";
import { type ApiCall, type Deps, defineService } from "./define-service.ts";

function topUpsOf({ topUps }: Pick<Deps, "topUps">): TopUps {
  if (!topUps) throw new DomainError("payments_not_configured");
  return topUps;
}

async function createTopUp(deps: Deps, { amountMicros, returnUrl }: CreateTopUpRequest, call: ApiCall) {
  const topUps = topUpsOf(deps);
  if (returnUrl !== "" && !isReturnUrl(returnUrl))
    throw DomainError.ofField("return_url", "must be an https URL, or an http URL of this machine");
  const { accountId } = call.key;
  const { idempotencyKey } = call;
  return { topup: viewTopUp(await topUps.create({ accountId, amountMicros, returnUrl, idempotencyKey })) };
}

function isReturnUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url?.hostname ?? "");
  return url?.protocol === "https:" || (url?.protocol === "http:" && isLocal);
}

async function getTopUp(deps: Deps, { id }: GetTopUpRequest, call: ApiCall) {
  topUpsOf(deps);
  return { topup: viewTopUp(await getTopUpRow(deps.database, call.key.accountId, id)) };
}

async function listTopUps(deps: Deps, request: ListTopUpsRequest, call: ApiCall) {
  topUpsOf(deps);
  const { accountId } = call.key;
  const { rows, nextPageToken } = await listTopUpRows(deps.database, accountId, readPage("topups", request));
  return { topups: rows.map(viewTopUp), nextPageToken };
}

/** The top-ups of all accounts, or of one, for operators. */
export async function listAllTopUps({ database }: Pick<Deps, "database">, request: ListAllTopUpsRequest) {
  const { onlyProblems } = request;
  if (onlyProblems && request.accountId !== "")
    throw DomainError.ofField("only_problems", "must not be set together with account_id");
  const accountId = request.accountId === "" ? "" : await accountIdOf(database, request.accountId);
  const page = readPage("topups", request, [accountId, String(onlyProblems)]);
  const { rows, nextPageToken } =
    accountId === ""
      ? await listAllTopUpRows(database, onlyProblems, page)
      : await listTopUpRows(database, accountId, page);
  return { topups: rows.map(viewAccountTopUp), nextPageToken };
}

function viewAccountTopUp(row: TopUpRow): MessageInitShape<typeof AccountTopUpSchema> {
  const { account_id: accountId, payment_id: paymentId, problem } = row;
  return { topup: viewTopUp(row), accountId, paymentId: paymentId ?? "", problem };
}

function viewTopUp(row: TopUpRow): MessageInitShape<typeof TopUpSchema> {
  return {
    id: row.id,
    state: row.state,
    amountMicros: row.amount_micros,
    amount: formatMicros(row.amount_micros),
    url: row.state === "pending" ? row.page_url : "",
    createdAt: timestampFromDate(row.created_at),
    ...(row.paid_at ? { paidAt: timestampFromDate(row.paid_at) } : {}),
    receiptUrl: row.receipt_url,
    refundedMicros: row.refunded_micros,
    disputedMicros: row.disputed_micros,
  };
}

export const topUpService = defineService(TopUpService, { createTopUp, getTopUp, listTopUps });
