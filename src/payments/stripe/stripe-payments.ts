import type { Stripe } from "stripe";
import { currencyOf, type Micros } from "../../domain/money.ts";
import {
  type ChargeOrder,
  type ChargeState,
  type FoundPayment,
  InvalidEvent,
  type MethodPage,
  type Order,
  type PaymentEvent,
  type PaymentProvider,
  type PaymentReference,
  ProviderError,
  UNPAID,
} from "../provider.ts";
import type { SeenPayment } from "../store.ts";
import { type StripeAccess, StripeClient } from "./stripe-client.ts";

export type StripeSettings = StripeAccess & {
  readonly webhookSecret: string;
  /** Whether Stripe creates an invoice for each payment on a page, which Stripe charges for. */
  readonly invoices: boolean;
};

/** Stripe delivers an event for three days. */
const UNDELIVERED_DAYS = 3;
const MAX_UNDELIVERED = 100;

/** Names of metadata, which Stripe copies from the payment to its charge. */
const TOP_UP = "vx_topup";
const ACCOUNT = "vx_account";

const PAGE_EVENTS = new Set([
  "checkout.session.completed",
  "checkout.session.async_payment_succeeded",
  "checkout.session.async_payment_failed",
  "checkout.session.expired",
]);
const PAYMENT_EVENTS = new Set(["payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.canceled"]);
/** Sent when the invoice of a payment exists, which can be after the events of the payment. It names the top-up. */
export const INVOICE_EVENT = "invoice.paid";
/** Their objects name the payment. */
const CHARGE_EVENTS = new Set([
  "charge.refunded",
  "charge.refund.updated",
  "charge.dispute.created",
  "charge.dispute.updated",
  "charge.dispute.closed",
  "charge.dispute.funds_withdrawn",
  "charge.dispute.funds_reinstated",
  "refund.created",
  "refund.updated",
  "refund.failed",
]);
export const EVENTS: readonly string[] = [...PAGE_EVENTS, ...PAYMENT_EVENTS, ...CHARGE_EVENTS, INVOICE_EVENT];

/** Disputes in these states withdraw nothing; "warning_…" are inquiries. */
const HARMLESS_DISPUTE = /^(won|prevented|warning_.*)$/;

const CHARGES: Readonly<Record<string, ChargeState>> = {
  requires_confirmation: "unconfirmed",
  requires_payment_method: "declined",
  requires_action: "declined",
  requires_capture: "declined",
  canceled: "canceled",
};

/** Stripe counts these in hundredths, although they have no decimals. */
const IN_HUNDREDTHS = ["isk", "ugx"];

/** What Stripe counts amounts of a currency in. */
function unitOf(code: string): Micros {
  return IN_HUNDREDTHS.includes(code) ? 10_000n : 10n ** BigInt(6 - currencyOf(code.toUpperCase()).decimals);
}

/** Payments with Stripe: with Checkout, and with stored payment methods. */
export class StripePayments implements PaymentProvider {
  readonly #settings: StripeSettings;
  readonly #productName: string;
  readonly #client: StripeClient;

  constructor(settings: StripeSettings, productName: string) {
    this.#settings = settings;
    this.#productName = productName;
    this.#client = new StripeClient(settings);
  }

  get createsInvoices(): boolean {
    return this.#settings.invoices;
  }

  async createPage({ topUpId, accountId, amountMicros, currency, returnUrl, customerId }: Order) {
    const metadata = { [TOP_UP]: topUpId, [ACCOUNT]: accountId };
    const successUrl = new URL(returnUrl);
    successUrl.searchParams.set("topup", topUpId);
    const session = await this.#client.request(({ checkout }) =>
      checkout.sessions.create(
        {
          mode: "payment",
          client_reference_id: topUpId,
          line_items: [
            {
              quantity: 1,
              price_data: {
                currency,
                unit_amount: Number(amountMicros / unitOf(currency)),
                product_data: { name: `${this.#productName} credit` },
              },
            },
          ],
          metadata,
          payment_intent_data: { metadata },
          // The payment must have the currency and the amount of the top-up.
          adaptive_pricing: { enabled: false },
          ...(customerId !== undefined && invoiceFor(customerId, metadata)),
          success_url: successUrl.href,
          cancel_url: returnUrl,
        },
        // Stripe refuses another request with the same key, such as one for the customer that replaces a deleted one.
        { idempotencyKey: customerId === undefined ? topUpId : `${topUpId} for ${customerId}` },
      ),
    );
    return pageOf(session);
  }

  async createCustomer(accountId: string, replaced?: string): Promise<string> {
    const metadata = { [ACCOUNT]: accountId };
    const idempotencyKey = `customer of ${accountId}${replaced === undefined ? "" : ` after ${replaced}`}`;
    const { id } = await this.#client.request(({ customers }) =>
      customers.create({ metadata, description: accountId }, { idempotencyKey }),
    );
    return id;
  }

  async createMethodPage({ accountId, customerId, currency, returnUrl }: Parameters<PaymentProvider["createMethodPage"]>[0]) {
    const session = await this.#client.request(({ checkout }) =>
      checkout.sessions.create({
        mode: "setup",
        customer: customerId,
        currency,
        metadata: { [ACCOUNT]: accountId },
        success_url: returnUrl,
        cancel_url: returnUrl,
      }),
    );
    return pageOf(session);
  }

  async createBillingPage(customer: string, returnUrl: string): Promise<string> {
    const { url } = await this.#client.request(({ billingPortal }) =>
      billingPortal.sessions.create({ customer, return_url: returnUrl }),
    );
    return url;
  }

  async lookUpMethodPage(id: string): Promise<MethodPage | undefined> {
    const page = await this.#find(({ checkout }) => checkout.sessions.retrieve(id, { expand: ["setup_intent.payment_method"] }));
    const accountId = page?.metadata?.[ACCOUNT] ?? "";
    if (page?.mode !== "setup" || accountId === "") return undefined;
    const intent = typeof page.setup_intent === "object" ? page.setup_intent : null;
    const method = typeof intent?.payment_method === "object" ? intent.payment_method : null;
    const isStored = page.status === "complete" && intent?.status === "succeeded" && method !== null;
    return {
      accountId,
      customerId: typeof page.customer === "string" ? page.customer : "",
      createdAt: new Date(page.created * 1_000),
      isOver: isStored || page.status === "expired",
      method: isStored ? { id: method.id, text: textOfMethod(method) } : undefined,
    };
  }

  async createPayment(order: ChargeOrder): Promise<string> {
    const { topUpId, accountId, amountMicros, currency, customerId, methodId } = order;
    const { id } = await this.#client.request(({ paymentIntents }) =>
      paymentIntents.create(
        {
          amount: Number(amountMicros / unitOf(currency)),
          currency,
          customer: customerId,
          payment_method: methodId,
          automatic_payment_methods: { enabled: true, allow_redirects: "never" },
          description: `${this.#productName} credit`,
          metadata: { [TOP_UP]: topUpId, [ACCOUNT]: accountId },
        },
        // Stripe refuses another request with the same key, such as one with the method that replaces another.
        { idempotencyKey: `${topUpId} with ${methodId}` },
      ),
    );
    return id;
  }

  async confirmPayment(id: string): Promise<boolean> {
    return await this.#attempt(({ paymentIntents }) => paymentIntents.confirm(id, { off_session: true }));
  }

  async cancelPayment(id: string): Promise<boolean> {
    return await this.#attempt(({ paymentIntents }) => paymentIntents.cancel(id));
  }

  async expirePage(id: string): Promise<boolean> {
    return await this.#attempt(({ checkout }) => checkout.sessions.expire(id));
  }

  async deleteCustomer(id: string): Promise<void> {
    await this.#find(({ customers }) => customers.del(id));
  }

  /** False if the request was refused, as it is when the payment is in another state. */
  async #attempt(send: (client: Stripe) => Promise<unknown>): Promise<boolean> {
    try {
      await this.#client.request(send);
      return true;
    } catch (error) {
      if (error instanceof ProviderError && error.isRefused) return false;
      throw error;
    }
  }

  async lookUp(reference: PaymentReference): Promise<FoundPayment | undefined> {
    return "pageId" in reference ? await this.#lookUpPage(reference.pageId) : await this.#lookUpPayment(reference.paymentId);
  }

  async #lookUpPage(id: string) {
    const expand = ["payment_intent.latest_charge", ...(this.createsInvoices ? ["invoice"] : [])];
    const page = await this.#find(({ checkout }) => checkout.sessions.retrieve(id, { expand }));
    const topUpId = page?.client_reference_id ?? "";
    if (!page || topUpId === "") return undefined;
    const intent = typeof page.payment_intent === "object" ? page.payment_intent : null;
    const paid = intent && (await this.#seenOf(intent, page.id));
    const invoiceUrl = (typeof page.invoice === "object" && page.invoice?.hosted_invoice_url) || "";
    if (paid?.status === "paid") return { topUpId, seen: { ...paid, invoiceUrl }, charge: "other" as const };
    const seen: SeenPayment = {
      ...UNPAID,
      status: statusOfPage(page, intent),
      pageId: page.id,
      accountId: page.metadata?.[ACCOUNT] ?? "",
      currency: page.currency ?? "",
      amountMicros: BigInt(page.amount_total ?? 0) * unitOf(page.currency ?? ""),
    };
    return { topUpId, seen, charge: "other" as const };
  }

  async #lookUpPayment(id: string) {
    const intent = await this.#find(({ paymentIntents }) => paymentIntents.retrieve(id, { expand: ["latest_charge"] }));
    const topUpId = intent?.metadata[TOP_UP] ?? "";
    if (!intent || topUpId === "") return undefined;
    return {
      topUpId,
      seen: await this.#seenOf(intent, undefined),
      charge: CHARGES[intent.status] ?? "other",
      methodId: idOf(intent.payment_method),
    };
  }

  async #seenOf(intent: Stripe.PaymentIntent, pageId: string | undefined): Promise<SeenPayment> {
    const charge = typeof intent.latest_charge === "object" ? intent.latest_charge : null;
    const disputed = charge?.disputed ? await this.#disputed(intent) : 0;
    const unit = unitOf(intent.currency);
    return {
      status: intent.status === "succeeded" ? "paid" : "open",
      pageId,
      paymentId: intent.id,
      accountId: intent.metadata[ACCOUNT] ?? "",
      currency: intent.currency,
      amountMicros: BigInt(intent.amount_received) * unit,
      refundedMicros: BigInt(charge?.amount_refunded ?? 0) * unit,
      disputedMicros: BigInt(disputed) * unit,
      receiptUrl: charge?.receipt_url ?? "",
      invoiceUrl: "",
      failure: intent.status === "canceled" ? failureOf(intent) : "",
    };
  }

  /** What disputes withdrew. A dispute in another currency is about the whole payment. */
  async #disputed({ id, currency, amount_received: amount }: Stripe.PaymentIntent): Promise<number> {
    const { data } = await this.#client.request(({ disputes }) => disputes.list({ payment_intent: id, limit: 100 }));
    return data
      .filter(({ status }) => !HARMLESS_DISPUTE.test(status))
      .reduce((sum, dispute) => sum + (dispute.currency === currency ? dispute.amount : amount), 0);
  }

  async readEvent(body: Buffer, signature: string): Promise<PaymentEvent | undefined> {
    const { client } = await this.#client.load();
    let event: Stripe.Event;
    try {
      // Whatever this throws is about the request: signatures of other lengths and bodies that are not JSON have errors of their own.
      event = client.webhooks.constructEvent(body, signature, this.#settings.webhookSecret);
    } catch (cause) {
      const message = "The body is not an event that Stripe-Signature signs, or it is too old.";
      throw new InvalidEvent(message, { cause });
    }
    if (!isEvent(event)) throw new InvalidEvent("The body is not an event of Stripe.");
    return eventOf(event);
  }

  async undelivered(): Promise<readonly PaymentEvent[]> {
    const after = Math.floor(Date.now() / 1_000) - UNDELIVERED_DAYS * 86_400;
    const { data } = await this.#client.request(({ events }) =>
      events.list({
        delivery_success: false,
        types: [...EVENTS],
        created: { gte: after },
        limit: MAX_UNDELIVERED,
      }),
    );
    return data.flatMap((event) => eventOf(event) ?? []).reverse();
  }

  /** Undefined if there is no such object. */
  async #find<Result>(retrieve: (client: Stripe) => Promise<Result>): Promise<Result | undefined> {
    return await this.#client.request(retrieve).catch((error: unknown) => {
      if (error instanceof ProviderError && error.isMissing) return undefined;
      throw error;
    });
  }
}

/** Types are not checked by Stripe's library. */
function isEvent(body: unknown): boolean {
  const { id, type, data } = Object(body) as Partial<Record<keyof Stripe.Event, unknown>>;
  const { object } = Object(data) as { readonly object?: unknown };
  return typeof id === "string" && typeof type === "string" && typeof object === "object" && object !== null;
}

/** Only names are read, so that the API version of the event does not matter. */
function eventOf({ id, type, data: { object }, account }: Stripe.Event): PaymentEvent | undefined {
  // An event of a connected account is not about our payments.
  if (account !== undefined || !EVENTS.includes(type)) return undefined;
  const named = object as {
    readonly id: string;
    readonly mode?: string;
    readonly client_reference_id?: string | null;
    readonly metadata?: Readonly<Record<string, string>> | null;
    readonly payment_intent?: string | { readonly id: string } | null;
  };
  if (named.mode === "setup") return { id, type, methodPageId: named.id };
  // The invoice is found at the page of the top-up.
  if (type === INVOICE_EVENT) return { id, type, topUpId: named.metadata?.[TOP_UP] };
  const payment = PAYMENT_EVENTS.has(type) ? named.id : named.payment_intent;
  return {
    id,
    type,
    topUpId: named.client_reference_id ?? named.metadata?.[TOP_UP],
    pageId: PAGE_EVENTS.has(type) ? named.id : undefined,
    paymentId: idOf(payment),
  };
}

function idOf(named: string | { readonly id: string } | null | undefined): string | undefined {
  return typeof named === "string" ? named : named?.id;
}

/** The page asks for what an invoice contains, and Stripe keeps it with the customer. */
function invoiceFor(customer: string, metadata: Stripe.MetadataParam): Partial<Stripe.Checkout.SessionCreateParams> {
  return {
    customer,
    customer_update: { name: "auto", address: "auto" },
    billing_address_collection: "required",
    tax_id_collection: { enabled: true },
    invoice_creation: { enabled: true, invoice_data: { metadata } },
  };
}

function pageOf({ id, url }: Stripe.Checkout.Session): { readonly id: string; readonly url: string } {
  if (!url) throw new ProviderError("Stripe returned a page without an address", 200);
  return { id, url };
}

/** "stopped" if the payment was cancelled without an attempt. */
function failureOf({ last_payment_error: error }: Stripe.PaymentIntent): string {
  return error ? (error.decline_code ?? error.code ?? error.type) : "stopped";
}

function textOfMethod({ type, card }: Stripe.PaymentMethod): string {
  if (!card) return type;
  const month = String(card.exp_month).padStart(2, "0");
  return `${card.brand} •••• ${card.last4}, expires ${month}/${card.exp_year}`;
}

function statusOfPage(
  { status, payment_status: payment }: Stripe.Checkout.Session,
  intent: Stripe.PaymentIntent | null,
): SeenPayment["status"] {
  if (status === "expired") return "expired";
  if (status !== "complete" || payment !== "unpaid") return "open";
  // A bank transfer that failed later cannot be repeated on the page.
  return intent?.status === "requires_payment_method" || intent?.status === "canceled" ? "failed" : "open";
}
