import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Stripe } from "stripe";

type Json = Record<string, unknown>;
type Charge = { id: string; amount_refunded: number; disputed: boolean; receipt_url: string; metadata: Json };
type Dispute = { id: string; payment_intent: string; amount: number; currency: string; status: string };
type Intent = {
  id: string;
  status: string;
  currency: string;
  amount_received: number;
  metadata: Json;
  latest_charge: Charge | null;
  /** Only of payments with a stored method. */
  amount?: number;
  payment_method?: string;
  last_payment_error?: Json | null;
};
/** The answer to a request that names a customer who does not exist or was deleted. */
const NO_CUSTOMER = { error: { status: 400, type: "invalid_request_error", code: "resource_missing", param: "customer" } };

/** A page on which a customer stores a payment method. */
type Setup = {
  id: string;
  url: string;
  status: string;
  created: number;
  mode: "setup";
  customer: string;
  metadata: Json;
  setup_intent: Json | null;
};
type Session = {
  id: string;
  url: string;
  status: string;
  payment_status: string;
  amount_total: number;
  currency: string;
  client_reference_id: string;
  metadata: Json;
  payment_intent: string | null;
  intentMetadata: Json;
  success_url: string;
  /** The metadata of the invoice that is to be created; undefined without one. */
  invoiceMetadata: Json | undefined;
  invoice: Json | null;
  customer: string | null;
};

export type Endpoint = {
  readonly id: string;
  readonly url: string;
  readonly livemode: boolean;
  status: "enabled" | "disabled";
  enabled_events: string[];
};

/** A server that is slower gets the event again. */
const DELIVERY_MS = 20_000;

export const WEBHOOK_SECRET = "whsec_of_the_tests";

export type StripeEvent = { readonly id: string; readonly type: string; readonly body: string };
type Delivery = { readonly secret?: string; readonly ageSeconds?: number; readonly body?: string };

/** A stateful fake of the parts of Stripe's API that are used. Events are created, but delivered only when a test says so. */
export class FakeStripe {
  readonly #server: Server;
  readonly #sessions = new Map<string, Session>();
  readonly #intents = new Map<string, Intent>();
  readonly #setups = new Map<string, Setup>();
  readonly #disputes: Dispute[] = [];
  /** How many payments were made with stored methods, by top-up. */
  readonly charges = new Map<string, number>();
  /** Decides a payment with a stored method: "succeeded", "processing", or the code of its decline. */
  decide: (method: string) => string = () => "succeeded";
  readonly #byKey = new Map<string, string>();
  readonly #signer = new Stripe("sk_test_signer");
  readonly deletedCustomers = new Set<string>();
  /** The accounts of all customers, by id. */
  readonly #customers = new Map<string, string>();
  /** The sessions of the customer portal. */
  readonly portals: { readonly customer: string; readonly return_url: string | null; readonly url: string }[] = [];
  /** The webhook endpoints, which tests may change. */
  readonly endpoints: Endpoint[] = [];
  /** Whether the settings of the customer portal are saved. */
  hasPortalSettings = true;
  /** Events in the order of their causes. */
  readonly events: StripeEvent[] = [];
  /** Those that the list of undelivered events returns. */
  undelivered: StripeEvent[] = [];
  /** The method and path of each request. */
  readonly requests: string[] = [];
  /** The requests whose client closed the connection before the answer. */
  abandoned: string[] = [];
  /** Called before a request is answered; the status that it returns is sent in place of the answer. */
  before: (request: string) => Promise<number | undefined> | number | undefined = () => undefined;
  /** Called after a request took effect; if it returns true, the connection ends without an answer. */
  losesAnswer: (request: string) => Promise<boolean> | boolean = () => false;

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<FakeStripe> {
    const fake = new FakeStripe();
    await new Promise<void>((resolve) => fake.#server.listen(0, "127.0.0.1", resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The settings of a server that uses it. */
  get env(): Record<string, string> {
    return { VX_STRIPE_SECRET_KEY: "sk_test_of_the_tests", VX_STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET, VX_STRIPE_API: this.url };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  sessionOf(topUpId: string): Session {
    const session = [...this.#sessions.values()].find((one) => one.client_reference_id === topUpId);
    if (!session) throw new Error(`there is no session of ${topUpId}`);
    return session;
  }

  /** The session of a Checkout page. */
  sessionAt(url: string): Session {
    const session = [...this.#sessions.values()].find((one) => one.url === url);
    if (!session) throw new Error(`there is no page ${url}`);
    return session;
  }

  /** The customer pays. With a slow method, the money arrives later: see `arrive` and `fail`. */
  pay(topUpId: string, changes: Partial<Intent> = {}, isSlow = false): StripeEvent[] {
    const session = this.sessionOf(topUpId);
    const intent: Intent = {
      id: idOf("pi"),
      status: isSlow ? "processing" : "succeeded",
      currency: session.currency,
      amount_received: isSlow ? 0 : session.amount_total,
      metadata: session.intentMetadata,
      latest_charge: isSlow ? null : chargeOf(session.intentMetadata),
      ...changes,
    };
    this.#intents.set(intent.id, intent);
    Object.assign(session, { status: "complete", payment_status: isSlow ? "unpaid" : "paid", payment_intent: intent.id });
    const completed = this.#emit("checkout.session.completed", viewOf(session));
    return isSlow ? [completed] : [completed, this.#emit("payment_intent.succeeded", { ...intent })];
  }

  /** Stripe creates the invoice of a payment, which can be after the events of the payment. */
  issueInvoice(topUpId: string): StripeEvent {
    const session = this.sessionOf(topUpId);
    if (!session.invoiceMetadata) throw new Error(`${topUpId} is to have no invoice`);
    const id = idOf("in");
    const metadata = session.invoiceMetadata;
    session.invoice = { id, object: "invoice", metadata, hosted_invoice_url: `https://invoice.stripe.com/i/${id}` };
    // Earlier API versions name the payment.
    return this.#emit("invoice.paid", { ...session.invoice, payment_intent: session.payment_intent });
  }

  /** Those that were not deleted. */
  customersOf(accountId: string): string[] {
    const own = [...this.#customers].filter(([id, of]) => of === accountId && !this.deletedCustomers.has(id));
    return own.map(([id]) => id);
  }

  setupOf(accountId: string): Setup {
    const setup = [...this.#setups.values()].filter((one) => one.metadata.vx_account === accountId).at(-1);
    if (!setup) throw new Error(`there is no page for a payment method of ${accountId}`);
    return setup;
  }

  /** The customer stores a card on a page. */
  storeCard(setup: Setup, last4 = "4242"): StripeEvent {
    setup.status = "complete";
    const card = { brand: "visa", last4, exp_month: 3, exp_year: 2031 };
    const payment_method = { id: `pm_${last4}`, type: "card", card };
    setup.setup_intent = { id: idOf("seti"), status: "succeeded", payment_method };
    return this.#emit("checkout.session.completed", { object: "checkout.session", ...setup });
  }

  expireSetup(setup: Setup): StripeEvent {
    setup.status = "expired";
    return this.#emit("checkout.session.expired", { object: "checkout.session", ...setup });
  }

  /** The payment of an automatic top-up. */
  chargeOf(topUpId: string): Intent {
    const [intent] = this.chargesOf(topUpId);
    if (!intent) throw new Error(`${topUpId} has no payment`);
    return intent;
  }

  /** The first payment of an account with a stored method. */
  intentOf(accountId: string): Intent | undefined {
    return [...this.#intents.values()].find(({ metadata }) => metadata.vx_account === accountId);
  }

  /** Also those that were created and never made. */
  chargesOf(topUpId: string): Intent[] {
    return [...this.#intents.values()].filter(({ metadata }) => metadata.vx_topup === topUpId);
  }

  /** A payment that was processed succeeds. */
  arriveCharge(topUpId: string): StripeEvent {
    const intent = this.chargeOf(topUpId);
    this.#succeed(intent);
    return this.#emit("payment_intent.succeeded", { ...intent });
  }

  arrive(topUpId: string): StripeEvent {
    const session = this.sessionOf(topUpId);
    Object.assign(this.#paymentOf(topUpId), {
      status: "succeeded",
      amount_received: session.amount_total,
      latest_charge: chargeOf(session.intentMetadata),
    });
    session.payment_status = "paid";
    return this.#emit("checkout.session.async_payment_succeeded", viewOf(session));
  }

  fail(topUpId: string): StripeEvent {
    this.#paymentOf(topUpId).status = "requires_payment_method";
    return this.#emit("checkout.session.async_payment_failed", viewOf(this.sessionOf(topUpId)));
  }

  expire(topUpId: string): StripeEvent {
    const session = this.sessionOf(topUpId);
    session.status = "expired";
    return this.#emit("checkout.session.expired", viewOf(session));
  }

  refund(topUpId: string, amount: number): StripeEvent {
    const intent = this.#paymentOf(topUpId);
    const charge = intent.latest_charge as Charge;
    charge.amount_refunded += amount;
    return this.#emit("charge.refunded", { ...charge, object: "charge", payment_intent: intent.id });
  }

  dispute(topUpId: string, amount: number): StripeEvent {
    const intent = this.#paymentOf(topUpId);
    (intent.latest_charge as Charge).disputed = true;
    const dispute = { id: idOf("dp"), payment_intent: intent.id, amount, currency: intent.currency, status: "needs_response" };
    this.#disputes.push(dispute);
    return this.#emit("charge.dispute.created", { ...dispute, metadata: {} });
  }

  closeDispute(topUpId: string, status: "won" | "lost"): StripeEvent {
    const { id } = this.#paymentOf(topUpId);
    const dispute = this.#disputes.find(({ payment_intent: of }) => of === id) as Dispute;
    dispute.status = status;
    return this.#emit("charge.dispute.closed", { ...dispute, metadata: {} });
  }

  /** Every payment that was made, with what was given back or is disputed, in the currency's smallest unit. */
  payments() {
    return [...this.#intents.values()]
      .filter(({ status }) => status === "succeeded")
      .map((intent) => ({
        topUpId: String(intent.metadata.vx_topup),
        accountId: String(intent.metadata.vx_account),
        received: intent.amount_received,
        refunded: intent.latest_charge?.amount_refunded ?? 0,
        disputed: this.#disputes
          .filter(({ payment_intent: of, status }) => of === intent.id && status !== "won")
          .reduce((sum, { amount }) => sum + amount, 0),
      }));
  }

  paymentOf(topUpId: string): string {
    return this.#paymentOf(topUpId).id;
  }

  sign(payload: string, secret = WEBHOOK_SECRET, ageSeconds = 0): string {
    const timestamp = Math.floor(Date.now() / 1_000) - ageSeconds;
    return this.#signer.webhooks.generateTestHeaderString({ payload, secret, timestamp });
  }

  /** Posts an event as Stripe does, and returns the status of the response. */
  async deliver(event: StripeEvent, serverUrl: string, delivery: Delivery = {}): Promise<number> {
    const { secret = WEBHOOK_SECRET, ageSeconds = 0, body = event.body } = delivery;
    const signature = this.sign(event.body, secret, ageSeconds);
    const response = await fetch(`${serverUrl}/stripe/events`, {
      method: "POST",
      headers: { "content-type": "application/json", "stripe-signature": signature },
      body,
      signal: AbortSignal.timeout(DELIVERY_MS),
    });
    await response.arrayBuffer();
    return response.status;
  }

  /** An event of another shape, not caused by anything here. */
  emitOther(type: string, object: Json, fields: Json = {}): StripeEvent {
    return this.#emit(type, object, fields);
  }

  #paymentOf(topUpId: string): Intent {
    const intent = this.#intents.get(this.sessionOf(topUpId).payment_intent ?? "");
    if (!intent) throw new Error(`${topUpId} has no payment`);
    return intent;
  }

  #emit(type: string, object: Json, fields: Json = {}): StripeEvent {
    const id = idOf("evt");
    const body = JSON.stringify({
      id,
      object: "event",
      api_version: "2026-10-28.endive",
      created: Math.floor(Date.now() / 1_000),
      livemode: false,
      type,
      data: { object },
      ...fields,
    });
    const event = { id, type, body };
    this.events.push(event);
    return event;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", this.url);
    const name = `${request.method} ${url.pathname}`;
    this.requests.push(name);
    response.once("close", () => !response.writableFinished && this.abandoned.push(name));
    // A server that is killed breaks its requests off.
    const form = await text(request).catch(() => undefined);
    if (form === undefined) return;
    const status = await this.before(name);
    if (status !== undefined) return send(response, status, { error: { type: "api_error", message: "fake" } });
    const key = request.headers["idempotency-key"];
    const answer = this.#answer(name, url, new URLSearchParams(form), typeof key === "string" ? key : "");
    if (await this.losesAnswer(name)) {
      response.destroy();
      return;
    }
    const error = answer?.error as { readonly status?: number } | undefined;
    send(
      response,
      answer ? (error?.status ?? 200) : 404,
      answer ?? { error: { type: "invalid_request_error", code: "resource_missing" } },
    );
  }

  #answer(name: string, { searchParams }: URL, form: URLSearchParams, key: string): Json | undefined {
    const [, id = ""] = /\/([a-z]+_\w+)$/.exec(name) ?? [];
    if (this.deletedCustomers.has(form.get("customer") ?? "")) return NO_CUSTOMER;
    if (name === "POST /v1/customers") return this.#createCustomer(form, key);
    if (name === "POST /v1/billing_portal/sessions") return this.#openPortal(form);
    if (name === "GET /v1/billing_portal/configurations") return listOf(this.hasPortalSettings ? [{ id: idOf("bpc") }] : []);
    if (name === "GET /v1/webhook_endpoints") return listOf(this.endpoints);
    if (name === "POST /v1/webhook_endpoints") return this.#createEndpoint(form);
    if (name.startsWith("POST /v1/webhook_endpoints/")) return this.#updateEndpoint(id, form);
    if (name.startsWith("DELETE /v1/customers/")) return this.#deleteCustomer(id);
    const [, pageId = ""] = /^POST \/v1\/checkout\/sessions\/(\w+)\/expire$/.exec(name) ?? [];
    if (pageId !== "") return this.#expirePage(this.#sessions.get(pageId));
    if (name === "POST /v1/checkout/sessions")
      return form.get("mode") === "setup"
        ? { object: "checkout.session", ...this.#createSetup(form) }
        : viewOf(this.#createSession(form, key));
    if (name.startsWith("GET /v1/checkout/sessions/") && this.#setups.has(id))
      return { object: "checkout.session", ...this.#setups.get(id) };
    if (name === "POST /v1/payment_intents") return this.#createIntent(form, key);
    const [, intentId = "", action = ""] = /^POST \/v1\/payment_intents\/(\w+)\/(confirm|cancel)$/.exec(name) ?? [];
    if (action !== "") return this.#act(this.#intents.get(intentId) as Intent, action);
    if (name.startsWith("GET /v1/checkout/sessions/")) {
      const session = this.#sessions.get(id);
      return (
        session && {
          ...viewOf(session),
          ...(searchParams.getAll("expand[1]").includes("invoice") && { invoice: session.invoice }),
          payment_intent: this.#intents.get(session.payment_intent ?? "") ?? null,
        }
      );
    }
    if (name.startsWith("GET /v1/payment_intents/")) return this.#intents.get(id);
    if (name === "GET /v1/disputes") {
      const of = searchParams.get("payment_intent");
      return listOf(this.#disputes.filter(({ payment_intent: paymentId }) => paymentId === of));
    }
    if (name === "GET /v1/events") return listOf([...this.undelivered].reverse().map(({ body }) => JSON.parse(body)));
    throw new Error(`the fake of Stripe has no ${name}`);
  }

  /** Each request creates another session, of a customer that exists. */
  #openPortal(form: URLSearchParams): Json {
    const customer = form.get("customer") ?? "";
    if (!customer.startsWith("cus_")) return NO_CUSTOMER;
    const id = idOf("bps");
    const session = { id, customer, return_url: form.get("return_url"), url: `https://billing.stripe.com/p/${id}` };
    this.portals.push(session);
    return { object: "billing_portal.session", ...session };
  }

  #createCustomer(form: URLSearchParams, key: string): Json {
    const id = this.#byKeyOf(key, () => idOf("cus"));
    this.#customers.set(id, form.get("metadata[vx_account]") ?? "");
    return { id, object: "customer" };
  }

  /** A repetition finds no customer. */
  #deleteCustomer(id: string): Json | undefined {
    if (this.deletedCustomers.has(id)) return undefined;
    this.deletedCustomers.add(id);
    return { id, object: "customer", deleted: true };
  }

  #expirePage(session: Session | undefined): Json {
    if (session?.status !== "open") return { error: { status: 400, type: "invalid_request_error" } };
    session.status = "expired";
    return viewOf(session);
  }

  #byKeyOf(key: string, create: () => string): string {
    const id = this.#byKey.get(key) ?? create();
    this.#byKey.set(key, id);
    return id;
  }

  #createSetup(form: URLSearchParams): Setup {
    const id = idOf("cs_test");
    const setup: Setup = {
      id,
      url: `https://checkout.stripe.com/c/setup/${id}`,
      status: "open",
      created: Math.floor(Date.now() / 1_000) + this.#setups.size,
      mode: "setup",
      customer: form.get("customer") ?? "",
      metadata: { vx_account: form.get("metadata[vx_account]") },
      setup_intent: null,
    };
    this.#setups.set(id, setup);
    return setup;
  }

  #createIntent(form: URLSearchParams, key: string): Json {
    const id = this.#byKeyOf(key, () => idOf("pi"));
    const known = this.#intents.get(id);
    if (known && known.payment_method !== form.get("payment_method"))
      return { error: { status: 400, type: "idempotency_error" } };
    const intent: Intent = known ?? {
      id,
      status: "requires_confirmation",
      currency: form.get("currency") ?? "",
      amount: Number(form.get("amount")),
      amount_received: 0,
      metadata: { vx_topup: form.get("metadata[vx_topup]"), vx_account: form.get("metadata[vx_account]") },
      payment_method: form.get("payment_method") ?? "",
      last_payment_error: null,
      latest_charge: null,
    };
    this.#intents.set(id, intent);
    return intent;
  }

  /** As Stripe does: a payment can be confirmed once, and not after it was cancelled. */
  #act(intent: Intent, action: string): Json {
    const isOpen = ["requires_confirmation", "requires_payment_method"].includes(intent.status);
    if (!isOpen || (action === "confirm" && intent.status !== "requires_confirmation"))
      return { error: { status: 400, type: "invalid_request_error", code: "payment_intent_unexpected_state" } };
    if (action === "cancel") {
      intent.status = "canceled";
      return intent;
    }
    const decision = this.decide(intent.payment_method ?? "");
    if (decision === "succeeded") this.#succeed(intent);
    else if (decision === "processing") intent.status = decision;
    else {
      const error = { type: "card_error", code: "card_declined", decline_code: decision };
      Object.assign(intent, { status: "requires_payment_method", last_payment_error: error });
      return { error: { status: 402, ...error } };
    }
    return intent;
  }

  /** The secret is only in this answer. */
  #createEndpoint(form: URLSearchParams): Json {
    const endpoint: Endpoint = {
      id: idOf("we"),
      url: form.get("url") ?? "",
      livemode: false,
      status: "enabled",
      enabled_events: listIn(form, "enabled_events"),
    };
    this.endpoints.push(endpoint);
    return { ...endpoint, secret: WEBHOOK_SECRET };
  }

  #updateEndpoint(id: string, form: URLSearchParams): Json | undefined {
    const endpoint = this.endpoints.find((one) => one.id === id);
    if (!endpoint) return undefined;
    endpoint.enabled_events = listIn(form, "enabled_events");
    if (form.get("disabled") === "false") endpoint.status = "enabled";
    return endpoint;
  }

  #succeed(intent: Intent): void {
    const { amount = 0, metadata } = intent;
    Object.assign(intent, { status: "succeeded", amount_received: amount, latest_charge: chargeOf(metadata) });
    const topUpId = String(metadata.vx_topup);
    this.charges.set(topUpId, (this.charges.get(topUpId) ?? 0) + 1);
  }

  #createSession(form: URLSearchParams, key: string): Session {
    const known = this.#sessions.get(this.#byKey.get(key) ?? "");
    if (known) return known;
    const id = idOf("cs_test");
    const metadataOf = (name: string) => ({
      vx_topup: form.get(`${name}[vx_topup]`),
      vx_account: form.get(`${name}[vx_account]`),
    });
    const hasInvoice = form.get("invoice_creation[enabled]") === "true";
    const session: Session = {
      id,
      url: `https://checkout.stripe.com/c/pay/${id}`,
      status: "open",
      payment_status: "unpaid",
      amount_total: Number(form.get("line_items[0][price_data][unit_amount]")),
      currency: form.get("line_items[0][price_data][currency]") ?? "",
      client_reference_id: form.get("client_reference_id") ?? "",
      metadata: metadataOf("metadata"),
      intentMetadata: metadataOf("payment_intent_data[metadata]"),
      payment_intent: null,
      success_url: form.get("success_url") ?? "",
      invoiceMetadata: hasInvoice ? metadataOf("invoice_creation[invoice_data][metadata]") : undefined,
      invoice: null,
      customer: form.get("customer"),
    };
    this.#sessions.set(id, session);
    this.#byKey.set(key, id);
    return session;
  }
}

function idOf(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString("hex")}`;
}

function chargeOf(metadata: Json): Charge {
  const id = idOf("ch");
  return { id, amount_refunded: 0, disputed: false, receipt_url: `https://pay.stripe.com/receipts/${id}`, metadata };
}

function viewOf({ intentMetadata: _, invoiceMetadata: _of, invoice, ...session }: Session): Json {
  return { object: "checkout.session", ...session, invoice: invoice?.id ?? null };
}

/** A list in a form: name[0], name[1], … */
function listIn(form: URLSearchParams, name: string): string[] {
  return [...form].filter(([field]) => field.startsWith(`${name}[`)).map(([, value]) => value);
}

function listOf(data: readonly unknown[]): Json {
  return { object: "list", data, has_more: false, url: "/" };
}

function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
