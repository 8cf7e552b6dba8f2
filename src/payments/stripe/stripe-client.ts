import type { Stripe } from "stripe";
import { ProviderError } from "../provider.ts";

export type StripeAccess = {
  readonly secretKey: string;
  /** Another address of the API, for tests. */
  readonly api: URL | undefined;
};

const REQUEST_MS = 10_000;
const RETRIES = 2;

/** Requests to Stripe, with errors that contain nothing secret. */
export class StripeClient {
  readonly #access: StripeAccess;
  #loaded: Promise<{ readonly Stripe: typeof Stripe; readonly client: Stripe }> | undefined;

  constructor(access: StripeAccess) {
    this.#access = access;
  }

  async request<Result>(send: (client: Stripe) => Promise<Result>): Promise<Result> {
    const { Stripe, client } = await this.load();
    try {
      return await send(client);
    } catch (error) {
      if (!(error instanceof Stripe.errors.StripeError)) throw error;
      const { statusCode = 0, type, code, param } = error;
      const hasNoCustomer = code === "resource_missing" && param === "customer";
      const what = statusCode === 0 ? "cannot be reached" : `answered ${statusCode}`;
      // The messages of Stripe can contain parts of the secret key.
      throw new ProviderError(`Stripe ${what} (${type})`, statusCode, { hasNoCustomer });
    }
  }

  /** Loaded with the first use: the package is large. */
  load() {
    this.#loaded ??= import("stripe").then(({ Stripe }) => {
      const { secretKey, api } = this.#access;
      const address = api && {
        protocol: api.protocol === "http:" ? ("http" as const) : ("https" as const),
        host: api.hostname,
        port: api.port || (api.protocol === "http:" ? 80 : 443),
      };
      const client = new Stripe(secretKey, {
        ...address,
        timeout: REQUEST_MS,
        maxNetworkRetries: RETRIES,
        telemetry: false,
      });
      return { Stripe, client };
    });
    return this.#loaded;
  }
}
