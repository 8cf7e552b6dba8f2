import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { paymentCurrency } from "../domain/top-up.ts";

export type AutoTopUpRow = sql.AutoTopupView;

export type AutoTopUpSettings = {
  readonly isEnabled: boolean;
  readonly thresholdMicros: Micros;
  readonly amountMicros: Micros;
  readonly monthlyMaxMicros: Micros;
};

/** Undefined before the settings were changed or a customer was stored for the first time. */
export async function getAutoTopUp(database: Cells, accountId: string): Promise<AutoTopUpRow | undefined> {
  const lane = laneOfId(accountId);
  const [row] = await sql.getAutoTopup(database.at(lane), { lane, accountId });
  return row;
}

export async function putAutoTopUp(
  database: Cells,
  action: Action,
  accountId: string,
  settings: AutoTopUpSettings,
): Promise<AutoTopUpRow | undefined> {
  const values = { ...settings, lane: laneOfId(accountId), accountId, currency: paymentCurrency() };
  const [row] = await sql.putAutoTopup(database, action, values);
  return row;
}

/**
 * Stores the customer at the provider, and the page for a payment method. The customer that was stored first stays, unless it is the
 * replaced one. Undefined if the account was closed: then the customer is to be deleted.
 */
export async function setAutoTopUpPage(
  database: Cells,
  accountId: string,
  customer: { readonly id: string; readonly replaced?: string | undefined },
  page?: { readonly id: string; readonly url: string },
): Promise<AutoTopUpRow | undefined> {
  const lane = laneOfId(accountId);
  const [row] = await sql.setAutoTopupPage(database.at(lane), {
    lane,
    accountId,
    currency: paymentCurrency(),
    customerId: customer.id,
    replaced: customer.replaced,
    pageId: page?.id,
    pageUrl: page?.url,
  });
  return row;
}

/** After the provider deleted the customer. */
export async function forgetCustomer(database: Cells, accountId: string, customerId: string): Promise<void> {
  const lane = laneOfId(accountId);
  await sql.forgetCustomer(database.at(lane), { lane, accountId, customerId });
}

type SeenPage = {
  readonly id: string;
  readonly createdAt: Date;
  readonly customerId: string;
  readonly isOver: boolean;
  readonly method: { readonly id: string; readonly text: string } | undefined;
};

/** Applies the state of a page for a payment method. */
export async function applyAutoTopUpPage(
  database: Cells,
  accountId: string,
  { id, createdAt, customerId, isOver, method }: SeenPage,
): Promise<void> {
  const lane = laneOfId(accountId);
  const page = { pageId: id, pageAt: createdAt, customerId, isOver, methodId: method?.id, method: method?.text };
  await sql.applyAutoTopupPage(database.at(lane), { lane, accountId, ...page });
}

/** The accounts of a cell to look at now. Each is returned to one server. */
export async function autoTopUpsDue(cell: FunctionCaller, limit: number): Promise<string[]> {
  const rows = await sql.autoTopupsDue(cell, { limit });
  return rows.map(({ account_id: accountId }) => accountId);
}

/** Lets automatic top-ups start again after their month is over. */
export async function resumeAutoTopUp(database: Cells, accountId: string): Promise<void> {
  const lane = laneOfId(accountId);
  await sql.resumeAutoTopup(database.at(lane), { lane, accountId });
}

/** Starts an automatic top-up after a call was refused, if less than the threshold is free. */
export async function topUpAfterRefusal(database: Cells, accountId: string): Promise<void> {
  const lane = laneOfId(accountId);
  await sql.topUpAfterRefusal(database.at(lane), { lane, accountId });
}
