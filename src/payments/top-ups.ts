import type { Action } from "../database/action.ts";
import type { Cells } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import type { Ids } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import { currency, formatMicros, type Micros } from "../domain/money.ts";
import { paymentUnit } from "../domain/top-up.ts";
import { AutoTopUps } from "./auto-top-ups.ts";
import { runAll, throwFailures } from "./failures.ts";
import { type PaymentEvent, type PaymentProvider, type PaymentReference, ProviderError, UNPAID } from "./provider.ts";
import {
  applyPayment,
  createTopUp,
  findTopUp,
  type SeenPayment,
  setTopUpPage,
  setTopUpPayment,
  type TopUpRow,
  topUpCharge,
  topUpsToPoll,
} from "./store.ts";

export type TopUpsOptions = {
  readonly database: Cells;
  readonly ids: Pick<Ids, "topUp">;
  readonly provider: PaymentProvider;
  readonly minMicros: Micros;
  readonly maxMicros: Micros;
  /** Where customers return to if they name no address. */
  readonly returnUrl: string;
  readonly now: () => number;
  /** Called when operators should look at a top-up. */
  readonly onAlert: (alert: TopUpAlert) => void;
};

/** Why operators should look at a payment: what differs from the top-up, or how it was credited. */
export const ALERT_REASONS = [
  "account",
  "page",
  "payment",
  "currency",
  "amount",
  "balance",
  "late",
  "suspended",
  "closed",
] as const;

export type TopUpAlert = { readonly topUpId: string; readonly accountId: string; readonly reason: string };

export type TopUpOrder = {
  readonly accountId: string;
  readonly amountMicros: Micros;
  /** Empty for the default. */
  readonly returnUrl: string;
  readonly idempotencyKey: string | undefined;
  readonly action: Action;
};

const DAY_MS = 86_400_000;
/** The provider knows its idempotency keys for a day. */
const MAX_PAGE_AGE_MS = DAY_MS - 3_600_000;
/** Each repetition follows a change by another server, or the storing of an automatic payment. */
const MAX_READS = 8;
const POLLED_PER_ROUND = 20;
const MAX_KNOWN_EVENTS = 1_000;

/** Payments of customers into their accounts. */
export class TopUps {
  readonly #options: TopUpsOptions;
  /** Undelivered events that were handled. */
  readonly #handled = new Set<string>();
  readonly automatic: AutoTopUps;

  constructor(options: TopUpsOptions) {
    this.#options = options;
    this.automatic = new AutoTopUps({ ...options, checkAmount: (micros) => this.#checkAmount(micros) });
  }

  /** Creates a top-up and the page on which it is paid. A repetition after a failure continues. */
  async create(order: TopUpOrder): Promise<TopUpRow> {
    const { database, ids, returnUrl, now } = this.#options;
    const { accountId, amountMicros, idempotencyKey } = order;
    this.#checkAmount(amountMicros);
    const row = await createTopUp(database, {
      id: ids.topUp(laneOfId(accountId)),
      accountId,
      amountMicros,
      returnUrl: order.returnUrl || returnUrl,
      hasDefaultUrl: order.returnUrl === "",
      idempotencyKey,
      action: order.action,
    });
    const isOld = now() - row.created_at.getTime() > MAX_PAGE_AGE_MS;
    if (row.page_id !== null || row.state !== "pending" || isOld) return row;
    const page = await this.#createPage(row).catch(async (error: unknown) => {
      if (!(error instanceof ProviderError)) throw error;
      if (error.isRefused) await applyPayment(database, row.id, row.version, withoutPage(row, "failed"));
      throw new DomainError("unavailable", {
        message: "The payment provider did not create a page. Nothing is charged. Retry later.",
        cause: error,
      });
    });
    return await setTopUpPage(database, row.id, page);
  }

  async #createPage(row: TopUpRow) {
    const { provider } = this.#options;
    const { id: topUpId, account_id: accountId, amount_micros: amountMicros, currency } = row;
    const order = { topUpId, accountId, amountMicros, currency, returnUrl: row.return_url };
    const createPage = (customerId?: string) => provider.createPage({ ...order, customerId });
    return await (provider.createsInvoices ? this.automatic.withCustomer(accountId, createPage) : createPage());
  }

  #checkAmount(micros: Micros): void {
    const { minMicros, maxMicros } = this.#options;
    if (micros < minMicros || micros > maxMicros)
      throw DomainError.ofField(
        "amount_micros",
        `must be from ${minMicros} (${formatMicros(minMicros)}) to ${maxMicros} (${formatMicros(maxMicros)})`,
      );
    const unit = paymentUnit(currency());
    if (micros % unit !== 0n) throw DomainError.ofField("amount_micros", `must be a multiple of ${unit}`);
  }

  /** Looks up the payment that an event of the provider names. */
  async handle(event: PaymentEvent): Promise<void> {
    if (event.methodPageId !== undefined) return await this.automatic.refreshPage(event.methodPageId);
    const reference = referenceOf(event);
    const topUpId = event.topUpId ?? (reference && (await this.#options.provider.lookUp(reference))?.topUpId);
    if (topUpId !== undefined) await this.#refresh(topUpId, reference);
  }

  /**
   * Reads the state of a payment and applies it. If another server applied a state meanwhile, this one may be older, and it is
   * read again.
   */
  async #refresh(topUpId: string, reference?: PaymentReference): Promise<void> {
    const { database, onAlert } = this.#options;
    for (let reads = 0; reads < MAX_READS; reads++) {
      const row = await findTopUp(database, topUpId);
      // Payments of another installation with the same account at the provider.
      if (!row) return;
      const seen = row.is_automatic ? await this.#charge(row) : await this.#lookUp(row, reference);
      if (!seen) return;
      const { outcome, account_id: accountId, alert } = await applyPayment(database, topUpId, row.version, seen);
      if (alert !== "") onAlert({ topUpId, accountId, reason: alert });
      if (outcome !== "stale") return;
    }
    throw new DomainError("unavailable");
  }

  async #lookUp(row: TopUpRow, reference: PaymentReference | undefined): Promise<SeenPayment | undefined> {
    const at = reference ?? (row.page_id === null ? undefined : { pageId: row.page_id });
    const found = at && (await this.#options.provider.lookUp(at));
    return found?.topUpId === row.id ? found.seen : this.#seenWithoutPage(row);
  }

  /**
   * Makes the payment of an automatic top-up, as far as it is not made, and reads its state. Any server can continue after each step:
   * the payment is stored before it is confirmed, and the provider makes it at most once.
   */
  async #charge(row: TopUpRow): Promise<SeenPayment | undefined> {
    const { provider } = this.#options;
    const paymentId = row.payment_id ?? (await this.#createPayment(row));
    if (typeof paymentId !== "string") return paymentId;
    const found = await provider.lookUp({ paymentId });
    const isAllowed = found?.charge === "unconfirmed" && (await this.#mayConfirm(row.id, found.methodId));
    const isRefused = isAllowed && !(await provider.confirmPayment(paymentId));
    const confirmed = isAllowed ? await provider.lookUp({ paymentId }) : found;
    const isOpen = confirmed?.charge === "unconfirmed" || confirmed?.charge === "declined";
    if (isOpen) await provider.cancelPayment(paymentId);
    const last = isOpen ? await provider.lookUp({ paymentId }) : confirmed;
    if (last?.charge !== "canceled") return last?.seen;
    const { failure } = last.seen;
    return {
      ...last.seen,
      status: "failed",
      failure: isRefused && failure === "stopped" ? "refused" : failure,
    };
  }

  /** Whether the settings still allow the payment, with the method that the account has now. */
  async #mayConfirm(topUpId: string, methodId: string | undefined): Promise<boolean> {
    const charge = await topUpCharge(this.#options.database, topUpId);
    return charge.is_allowed && charge.method_id === methodId;
  }

  /** The id of the payment, or the state of the top-up if there can be none. */
  async #createPayment(row: TopUpRow): Promise<string | SeenPayment | undefined> {
    const { database, provider, now } = this.#options;
    if (row.state !== "pending") return undefined;
    if (now() - row.created_at.getTime() > MAX_PAGE_AGE_MS) return withoutPage(row, "expired", "no_answer");
    const { is_allowed, customer_id: customerId, method_id: methodId } = await topUpCharge(database, row.id);
    if (!is_allowed) return withoutPage(row, "failed", "stopped");
    const order = { accountId: row.account_id, amountMicros: row.amount_micros, currency: row.currency };
    try {
      const id = await provider.createPayment({ topUpId: row.id, customerId, methodId, ...order });
      return (await setTopUpPayment(database, row.id, id)).payment_id ?? undefined;
    } catch (error) {
      if (error instanceof ProviderError && error.isRefused) return withoutPage(row, "failed", "refused");
      throw error;
    }
  }

  /** A top-up whose page was never created cannot be paid any more after a day. */
  #seenWithoutPage(row: TopUpRow): SeenPayment | undefined {
    const isOver = row.page_id === null && this.#options.now() - row.created_at.getTime() > DAY_MS;
    return isOver ? withoutPage(row, "expired") : undefined;
  }

  /** Ends what the provider stores about an account that closes: the pages of its pending top-ups, and its customer, which it returns. */
  async end(accountId: string, pendingIds: readonly string[]): Promise<string | undefined> {
    const { database, provider } = this.#options;
    for (const id of pendingIds) {
      const row = await findTopUp(database, id);
      if (row?.page_id && !row.is_automatic) await provider.expirePage(row.page_id);
      await this.#refresh(id);
    }
    return await this.automatic.deleteCustomer(accountId);
  }

  /** Looks up the payments of a cell whose events may be missing. */
  async poll(cell: Cells["all"][number]): Promise<void> {
    const ids = await topUpsToPoll(cell, POLLED_PER_ROUND);
    await runAll(ids.map((id) => this.#refresh(id)));
  }

  /** Handles recent events that the provider could not deliver, each once. One that fails does not prevent the next. */
  async catchUp(): Promise<void> {
    const failures: unknown[] = [];
    for (const event of await this.#options.provider.undelivered())
      await this.#handleOnce(event).catch((error: unknown) => failures.push(error));
    throwFailures(failures);
  }

  async #handleOnce(event: PaymentEvent): Promise<void> {
    if (this.#handled.has(event.id)) return;
    await this.handle(event);
    this.#handled.add(event.id);
    const [oldest] = this.#handled;
    if (this.#handled.size > MAX_KNOWN_EVENTS && oldest !== undefined) this.#handled.delete(oldest);
  }
}

function referenceOf({ pageId, paymentId }: PaymentEvent): PaymentReference | undefined {
  if (pageId !== undefined) return { pageId };
  return paymentId === undefined ? undefined : { paymentId };
}

function withoutPage(row: TopUpRow, status: "failed" | "expired", failure = ""): SeenPayment {
  const { account_id: accountId, currency, amount_micros: amountMicros } = row;
  return { ...UNPAID, status, pageId: undefined, accountId, currency, amountMicros, failure };
}
