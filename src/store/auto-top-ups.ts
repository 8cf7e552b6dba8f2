import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { paymentCurrency } from "../domain/top-up.ts";
import { type Action, change } from "./action.ts";
import type { Cells, FunctionCaller } from "./driver/cells.ts";

export type AutoTopUpRow = {
  account_id: string;
  is_enabled: boolean;
  threshold_micros: bigint;
  amount_micros: bigint;
  monthly_max_micros: bigint;
  /** Failed payments in a row. */
  failures: number;
  last_failure: string;
  customer_id: string | null;
  method_id: string | null;
  method: string;
  /** The page on which the customer stores a payment method; null without one. */
  page_id: string | null;
  page_url: string;
  page_created_at: Date | null;
  /** What the automatic top-ups of this month add up to. */
  month_micros: bigint;
  /** The one that is not decided yet; empty without one. */
  pending_topup_id: string;
};

export type AutoTopUpSettings = {
  readonly isEnabled: boolean;
  readonly thresholdMicros: Micros;
  readonly amountMicros: Micros;
  readonly monthlyMaxMicros: Micros;
};

/** Undefined before the settings were changed or a customer was stored for the first time. */
export async function getAutoTopUp(database: Cells, accountId: string): Promise<AutoTopUpRow | undefined> {
  const lane = laneOfId(accountId);
  const [row] = await database.at(lane).call<AutoTopUpRow>("get_auto_topup", lane, accountId);
  return row;
}

export async function putAutoTopUp(
  database: Cells,
  action: Action,
  accountId: string,
  { isEnabled, thresholdMicros, amountMicros, monthlyMaxMicros }: AutoTopUpSettings,
): Promise<AutoTopUpRow | undefined> {
  const lane = laneOfId(accountId);
  const [row] = await change<AutoTopUpRow>(
    database,
    lane,
    action,
    "put_auto_topup",
    lane,
    accountId,
    isEnabled,
    thresholdMicros,
    amountMicros,
    monthlyMaxMicros,
    paymentCurrency(),
  );
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
  const [row] = await database
    .at(lane)
    .call<AutoTopUpRow>(
      "set_auto_topup_page",
      lane,
      accountId,
      paymentCurrency(),
      customer.id,
      customer.replaced ?? null,
      page?.id ?? null,
      page?.url ?? null,
    );
  return row;
}

/** After the provider deleted the customer. */
export async function forgetCustomer(database: Cells, accountId: string, customerId: string): Promise<void> {
  const lane = laneOfId(accountId);
  await database.at(lane).call("forget_customer", lane, accountId, customerId);
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
  await database
    .at(lane)
    .call("apply_auto_topup_page", lane, accountId, id, createdAt, customerId, isOver, method?.id ?? null, method?.text ?? null);
}

/** The accounts of a cell to look at now. Each is returned to one server. */
export async function autoTopUpsDue(cell: FunctionCaller, limit: number): Promise<string[]> {
  const rows = await cell.call<{ account_id: string }>("auto_topups_due", limit);
  return rows.map(({ account_id: accountId }) => accountId);
}

/** Lets automatic top-ups start again after their month is over. */
export async function resumeAutoTopUp(database: Cells, accountId: string): Promise<void> {
  const lane = laneOfId(accountId);
  await database.at(lane).call("resume_auto_topup", lane, accountId);
}

/** Starts an automatic top-up after a call was refused, if less than the threshold is free. */
export async function topUpAfterRefusal(database: Cells, accountId: string): Promise<void> {
  const lane = laneOfId(accountId);
  await database.at(lane).call("top_up_after_refusal", lane, accountId);
}
