import type { Micros } from "../domain/money.ts";
import type { SeenPayment } from "./store.ts";

export type Order = {
  readonly topUpId: string;
  readonly accountId: string;
  readonly amountMicros: Micros;
  readonly currency: string;
  /** Where the page sends the customer afterwards. */
  readonly returnUrl: string;
  /** The customer who gets an invoice; undefined for a payment without one. */
  readonly customerId: string | undefined;
};

/** A payment with the stored method of a customer. */
export type ChargeOrder = Omit<Order, "returnUrl" | "customerId"> & {
  readonly customerId: string;
  readonly methodId: string;
};

/**
 * What is to be done with a payment by a stored method: "unconfirmed" is created but not made, "declined" can only be cancelled, and
 * "canceled" is never made.
 */
export type ChargeState = "unconfirmed" | "declined" | "canceled" | "other";

/** A page on which a customer stores a payment method, as it was read from the provider. */
export type MethodPage = {
  readonly accountId: string;
  readonly customerId: string;
  readonly createdAt: Date;
  /** Whether it can store no method any more. */
  readonly isOver: boolean;
  /** The stored method, with a description such as "visa •••• 4242, expires 12/2030". */
  readonly method: { readonly id: string; readonly text: string } | undefined;
};

/** What the provider says has changed. Only its names are used: the state of the payment is always looked up. */
export type PaymentEvent = {
  readonly id: string;
  readonly type: string;
  /** The top-up, if the event names it. */
  readonly topUpId?: string | undefined;
  readonly pageId?: string | undefined;
  readonly paymentId?: string | undefined;
  /** The page for a payment method, if the event is about one. */
  readonly methodPageId?: string | undefined;
};

/** The page or the payment of a top-up. */
export type PaymentReference = { readonly pageId: string } | { readonly paymentId: string };

/** What a payment that was not made has. */
export const UNPAID = {
  paymentId: undefined,
  refundedMicros: 0n,
  disputedMicros: 0n,
  receiptUrl: "",
  invoiceUrl: "",
  failure: "",
} as const satisfies Partial<SeenPayment>;

export type FoundPayment = {
  readonly topUpId: string;
  readonly seen: SeenPayment;
  readonly charge: ChargeState;
  /** The stored method that the payment is made with; undefined for a payment on a page. */
  readonly methodId?: string | undefined;
};

/** Takes payments. All methods but `readEvent` throw a ProviderError. */
export type PaymentProvider = {
  /** Whether it creates invoices for payments on pages: then orders need a customer. */
  readonly createsInvoices: boolean;
  /** Creates the page on which the order is paid. A repetition within a day returns the same page. */
  createPage(order: Order): Promise<{ readonly id: string; readonly url: string }>;
  /** The current state of a payment, and the top-up that it names; undefined if it is not for a top-up. */
  lookUp(reference: PaymentReference): Promise<FoundPayment | undefined>;
  /** Creates a customer for an account, and returns its id. `replaced` is the one that was deleted, if there was one. */
  createCustomer(accountId: string, replaced?: string): Promise<string>;
  createMethodPage(
    order: Pick<ChargeOrder, "accountId" | "customerId" | "currency"> & Pick<Order, "returnUrl">,
  ): Promise<{ readonly id: string; readonly url: string }>;
  /** Creates a page on which the customer manages stored methods, the billing address and tax ids, and returns its address. */
  createBillingPage(customerId: string, returnUrl: string): Promise<string>;
  lookUpMethodPage(id: string): Promise<MethodPage | undefined>;
  /** Creates a payment that is made only when it is confirmed, and returns its id. A repetition within a day returns the same one. */
  createPayment(order: ChargeOrder): Promise<string>;
  /** Makes a payment without its customer, at most once. Returns whether the provider accepted that: look it up in any case. */
  confirmPayment(id: string): Promise<boolean>;
  /** Afterwards, the payment cannot be made any more, unless it was made before. Returns whether the provider accepted that. */
  cancelPayment(id: string): Promise<boolean>;
  /** Afterwards, the page of a top-up cannot be paid any more, unless it was paid before: look it up. */
  expirePage(id: string): Promise<boolean>;
  /** Deletes a customer with all stored payment methods. */
  deleteCustomer(id: string): Promise<void>;
  /** Verifies the signature and the age of an event; throws an InvalidEvent. Undefined for an event that is not about payments of top-ups. */
  readEvent(body: Buffer, signature: string): Promise<PaymentEvent | undefined>;
  /** Recent events that could not be delivered, oldest first. */
  undelivered(): Promise<readonly PaymentEvent[]>;
};

export class ProviderError extends Error {
  /** That of its response; 0 without one. */
  readonly #status: number;
  /** Whether the customer that the request names does not exist, or was deleted. */
  readonly hasNoCustomer: boolean;

  constructor(message: string, status: number, { hasNoCustomer = false } = {}) {
    super(message);
    this.name = "ProviderError";
    this.#status = status;
    this.hasNoCustomer = hasNoCustomer;
  }

  /** Whether the provider refused the request itself, so that a repetition fails too. */
  get isRefused(): boolean {
    return this.#status >= 400 && this.#status < 500 && ![401, 403, 409, 429].includes(this.#status);
  }

  get isMissing(): boolean {
    return this.#status === 404;
  }

  /** Whether the secret key lacks the right to the request. */
  get isForbidden(): boolean {
    return this.#status === 403;
  }
}

/** What was received is no event of the provider: its signature or its content is not valid. */
export class InvalidEvent extends Error {}
