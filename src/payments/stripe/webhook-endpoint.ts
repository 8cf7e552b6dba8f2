import type { Stripe } from "stripe";
import type { StripeClient } from "./stripe-client.ts";
import { EVENTS, INVOICE_EVENT } from "./stripe-payments.ts";

/** The path at which the public listener receives Stripe's events. */
export const EVENTS_PATH = "/stripe/events";

/** A webhook endpoint at Stripe with the address of the server. */
export type Endpoint = {
  readonly id: string;
  readonly isLive: boolean;
  readonly isEnabled: boolean;
  /** All that Stripe sends to it. */
  readonly events: readonly string[];
  /** Those that the server needs and does not get. */
  readonly missing: readonly string[];
};

/** Stripe allows 16 endpoints. */
const MAX_ENDPOINTS = 100;

type EnabledEvent = Stripe.WebhookEndpointCreateParams.EnabledEvent;

/** Reads, creates and changes the endpoint to which Stripe sends the events of payments. */
export class WebhookEndpoints {
  readonly url: string;
  readonly #client: StripeClient;
  readonly #needed: readonly string[];

  /** @param invoices whether Stripe creates an invoice for each payment on a page */
  constructor(client: StripeClient, publicUrl: string, invoices: boolean) {
    this.#client = client;
    this.url = publicUrl + EVENTS_PATH;
    this.#needed = EVENTS.filter((event) => invoices || event !== INVOICE_EVENT);
  }

  /** The endpoints with the address of the server. More than one would deliver each event several times. */
  async find(): Promise<readonly Endpoint[]> {
    const { data } = await this.#client.request(({ webhookEndpoints }) => webhookEndpoints.list({ limit: MAX_ENDPOINTS }));
    return data.filter(({ url }) => url === this.url).map((endpoint) => this.#stateOf(endpoint));
  }

  /** Returns the endpoint and its secret, which Stripe shows only once. */
  async create(): Promise<{ readonly endpoint: Endpoint; readonly secret: string }> {
    const created = await this.#client.request(({ webhookEndpoints }) =>
      webhookEndpoints.create({
        url: this.url,
        description: "Payments of top-ups",
        enabled_events: this.#needed as EnabledEvent[],
      }),
    );
    return { endpoint: this.#stateOf(created), secret: created.secret ?? "" };
  }

  /** Enables an endpoint and adds the events that are missing. Keeps its other events. */
  async repair({ id, events, missing }: Endpoint): Promise<Endpoint> {
    const repaired = await this.#client.request(({ webhookEndpoints }) =>
      webhookEndpoints.update(id, {
        disabled: false,
        enabled_events: [...events, ...missing] as EnabledEvent[],
      }),
    );
    return this.#stateOf(repaired);
  }

  #stateOf({ id, livemode, status, enabled_events: events }: Stripe.WebhookEndpoint): Endpoint {
    const missing = events.includes("*") ? [] : this.#needed.filter((event) => !events.includes(event));
    return { id, isLive: livemode, isEnabled: status === "enabled", events, missing };
  }
}
