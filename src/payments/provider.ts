import type { Micros } from "../domain/money.ts";
import type { SeenPayment } from "../store/top-ups.ts";

/** What a customer is to pay. */
export type Order = {
  readonly topUpId: string;
  readonly accountId: string;
  readonly amountMicros: Micros;
  readonly currency: string;
  /** Where the page sends the customer afterwards. */
  readonly returnUrl: string;
};

/** What the provider says has changed. Only its names are used: the state of the payment is always looked up. */
export type PaymentEvent = {
  readonly id: string;
  readonly type: string;
  /** The top-up, if the event names it. */
  readonly topUpId: string | undefined;
  readonly pageId: string | undefined;
  readonly paymentId: string | undefined;
};

/** The page or the payment of a top-up. */
export type PaymentReference = { readonly pageId: string } | { readonly paymentId: string };

/** Takes payments. All methods but `readEvent` throw a ProviderError. */
export type PaymentProvider = {
  /** Creates the page on which the order is paid. A repetition within a day returns the same page. */
  createPage(order: Order): Promise<{ readonly id: string; readonly url: string }>;
  /** The current state of a payment, and the top-up that it names; undefined if it is not for a top-up. */
  lookUp(reference: PaymentReference): Promise<{ topUpId: string; seen: SeenPayment } | undefined>;
  /** Verifies the signature and the age of an event. Undefined for an event that is not about payments of top-ups. */
  readEvent(body: Buffer, signature: string): Promise<PaymentEvent | undefined>;
  /** Recent events that could not be delivered, oldest first. */
  undelivered(): Promise<readonly PaymentEvent[]>;
};

/** A request to the provider that failed. */
export class ProviderError extends Error {
  /** That of its response; 0 without one. */
  readonly #status: number;

  constructor(message: string, status: number) {
    super(message);
    this.name = "ProviderError";
    this.#status = status;
  }

  /** Whether the provider refused the request itself, so that a repetition fails too. */
  get isRefused(): boolean {
    return this.#status >= 400 && this.#status < 500 && ![401, 403, 409, 429].includes(this.#status);
  }

  get isMissing(): boolean {
    return this.#status === 404;
  }
}

/** The signature of an event is not valid. */
export class InvalidSignature extends Error {}
