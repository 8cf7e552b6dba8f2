import { type FoundPayment, type PaymentProvider, type PaymentReference, ProviderError, UNPAID } from "./provider.ts";
import type { TopUpRow } from "./store.ts";

/** The start of the ids of pages and payments, before the id of their top-up. */
const PAGE = "simulated_page_";
const PAYMENT = "simulated_payment_";

/** The reference that reports the payment of a top-up as made. */
export function simulatedPaymentOf(topUpId: string) {
  return { paymentId: PAYMENT + topUpId };
}

const notSimulated = () => Promise.reject(new ProviderError("This is not simulated.", 501));

/**
 * Payments without money, for the owner of the demo account. Its page is a dialog of the customer page. Nothing is stored: the ids
 * name the top-up, and the top-up has the amount.
 */
export class SimulatedPayments implements PaymentProvider {
  readonly createsInvoices = false;
  readonly #find: (topUpId: string) => Promise<TopUpRow | undefined>;

  constructor(find: (topUpId: string) => Promise<TopUpRow | undefined>) {
    this.#find = find;
  }

  async createPage({ topUpId }: { readonly topUpId: string }) {
    return { id: PAGE + topUpId, url: `/account#/payments?pay=${topUpId}` };
  }

  async lookUp(reference: PaymentReference): Promise<FoundPayment | undefined> {
    const isPaid = "paymentId" in reference;
    const topUpId = isPaid ? reference.paymentId.slice(PAYMENT.length) : reference.pageId.slice(PAGE.length);
    const row = await this.#find(topUpId);
    if (!row) return undefined;
    const { account_id: accountId, currency, amount_micros: amountMicros } = row;
    const known = { ...UNPAID, pageId: PAGE + topUpId, accountId, currency, amountMicros };
    const seen = isPaid
      ? { ...known, status: "paid" as const, paymentId: reference.paymentId }
      : { ...known, status: "open" as const };
    return { topUpId, seen, charge: "other" };
  }

  readonly createCustomer = notSimulated;
  readonly createMethodPage = notSimulated;
  readonly createBillingPage = notSimulated;
  readonly lookUpMethodPage = notSimulated;
  readonly createPayment = notSimulated;
  readonly confirmPayment = notSimulated;
  readonly cancelPayment = notSimulated;
  readonly expirePage = notSimulated;
  readonly deleteCustomer = notSimulated;
  readonly readEvent = notSimulated;
  readonly undelivered = notSimulated;
}
