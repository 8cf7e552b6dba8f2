import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import { compareBytes, mergeCells } from "../database/cells/merge-cells.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { cutPage, type Page } from "../domain/page.ts";
import { paymentCurrency } from "../domain/top-up.ts";

export type TopUpRow = sql.Topups;

type NewTopUp = {
  readonly id: string;
  readonly accountId: string;
  readonly amountMicros: Micros;
  readonly returnUrl: string;
  /** Whether the caller sent no address, so that it is that of the server. */
  readonly hasDefaultUrl?: boolean;
  readonly idempotencyKey: string | undefined;
  readonly action: Action;
};

/** Creates a top-up, or returns the one that was created with the same idempotency key. */
export async function createTopUp(database: Cells, topUp: NewTopUp): Promise<TopUpRow> {
  const { action, hasDefaultUrl = false, ...given } = topUp;
  const [row] = await sql.createTopup(database, action, {
    ...given,
    lane: laneOfId(given.accountId),
    currency: paymentCurrency(),
    hasDefaultUrl,
  });
  return row as TopUpRow;
}

/** Returns the top-up with the page that was stored first. */
export async function setTopUpPage(
  database: Cells,
  id: string,
  page: { readonly id: string; readonly url: string },
): Promise<TopUpRow> {
  const lane = laneOfId(id);
  const [row] = await sql.setTopupPage(database.at(lane), { lane, id, pageId: page.id, pageUrl: page.url });
  return row as TopUpRow;
}

/** Stores the payment of an automatic top-up, before it is made. Returns the top-up with the payment that was stored first. */
export async function setTopUpPayment(database: Cells, id: string, paymentId: string): Promise<TopUpRow> {
  const lane = laneOfId(id);
  const [row] = await sql.setTopupPayment(database.at(lane), { lane, id, paymentId });
  return row as TopUpRow;
}

export type TopUpCharge = sql.TopupChargeRow;

/** How an automatic top-up is paid, and whether the settings still allow it. */
export async function topUpCharge(database: Cells, id: string): Promise<TopUpCharge> {
  const lane = laneOfId(id);
  const [row] = await sql.topupCharge(database.at(lane), { lane, id });
  return row as TopUpCharge;
}

const TOP_UP_ID = /^top_[0-9a-z]{26}$/;

/** Undefined if there is none, or none of this account. */
export async function findTopUp(database: Cells, id: string, accountId = ""): Promise<TopUpRow | undefined> {
  if (!TOP_UP_ID.test(id)) return undefined;
  const lane = laneOfId(id);
  const [row] = await sql.getTopup(database.at(lane), { lane, accountId, id });
  return row;
}

export async function getTopUp(database: Cells, accountId: string, id: string): Promise<TopUpRow> {
  const row = await findTopUp(database, id, accountId);
  if (!row) throw new DomainError("not_found", { message: `There is no top-up "${id}".` });
  return row;
}

/** The position of a row in a list is its id without the prefix. */
const PREFIX = "top_";

function before({ after }: Page): string {
  return after === "" ? "" : PREFIX + after;
}

function cut(rows: TopUpRow[], page: Page) {
  return cutPage(rows, page, ({ id }) => id.slice(PREFIX.length));
}

export type TopUpFilter = {
  /** Empty for all. */
  readonly state: string;
  /** Only those whose payment differs from the top-up. */
  readonly onlyProblems: boolean;
};

const ALL: TopUpFilter = { state: "", onlyProblems: false };

export async function listTopUps(database: Cells, accountId: string, page: Page, filter = ALL) {
  const lane = laneOfId(accountId);
  const range = { before: before(page), limit: page.size + 1 };
  const rows = await sql.listTopups(database.at(lane), { ...filter, ...range, lane, accountId });
  return cut(rows, page);
}

/** Those of all accounts. */
export async function listAllTopUps(database: Cells, page: Page, { state, onlyProblems }: TopUpFilter) {
  const rows = await mergeCells<TopUpRow>(database, page.size + 1, {
    read: (cell, last, limit) => sql.listTopups(cell, { state, onlyProblems, before: last?.id ?? before(page), limit }),
    compare: (one, other) => compareBytes(other.id, one.id),
    laneOf: ({ id }) => laneOfId(id),
  });
  return cut(rows, page);
}

/** The ids of pending top-ups of a cell whose payment should be looked up now. Each is returned to one server. */
export async function topUpsToPoll(cell: FunctionCaller, limit: number): Promise<string[]> {
  const rows = await sql.topupsToPoll(cell, { limit });
  return rows.map(({ id }) => id);
}

/** A payment as it was read from its provider. */
export type SeenPayment = {
  /** A payment that is processed is "open". */
  readonly status: "open" | "paid" | "failed" | "expired";
  readonly pageId: string | undefined;
  /** Undefined before the customer began to pay. */
  readonly paymentId: string | undefined;
  readonly accountId: string;
  readonly currency: string;
  readonly amountMicros: Micros;
  readonly refundedMicros: Micros;
  /** What open and lost disputes withdrew. */
  readonly disputedMicros: Micros;
  readonly receiptUrl: string;
  /** Empty if the provider has created none. */
  readonly invoiceUrl: string;
  /** Why an automatic top-up failed. Empty otherwise. */
  readonly failure: string;
};

export type Applied = sql.ApplyPaymentRow;

/** @param version that of the top-up before the payment was read */
export async function applyPayment(database: Cells, id: string, version: bigint, seen: SeenPayment): Promise<Applied> {
  const lane = laneOfId(id);
  const json = JSON.stringify({
    status: seen.status,
    page_id: seen.pageId,
    payment_id: seen.paymentId,
    account_id: seen.accountId,
    currency: seen.currency,
    amount_micros: String(seen.amountMicros),
    refunded_micros: String(seen.refundedMicros),
    disputed_micros: String(seen.disputedMicros),
    receipt_url: seen.receiptUrl,
    failure: seen.failure,
    invoice_url: seen.invoiceUrl,
  });
  const [row] = await sql.applyPayment(database.at(lane), { lane, id, version, seen: json });
  return row as Applied;
}
