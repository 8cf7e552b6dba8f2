import { ProviderError } from "../payments/provider.ts";
import { StripeClient } from "../payments/stripe/stripe-client.ts";
import { type Endpoint, WebhookEndpoints } from "../payments/stripe/webhook-endpoint.ts";
import type { Finding } from "./finding.ts";
import type { Config } from "./settings/config.ts";

export async function checkPayments({ payments, publicUrl }: Config): Promise<Finding[]> {
  if (!payments) return [];
  const client = new StripeClient(payments.stripe);
  const endpoints = new WebhookEndpoints(client, publicUrl, payments.stripe.invoices);
  return await Promise.all([
    orUnreadable("payment events", "Webhook Endpoints", checkEndpoint(endpoints)),
    orUnreadable("customer portal", "Customer portal", checkPortal(client)),
  ]);
}

type Result = Omit<Finding, "check">;

async function orUnreadable(check: string, right: string, result: Promise<Result>): Promise<Finding> {
  try {
    return { check, ...(await result) };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const advice = `check VX_STRIPE_SECRET_KEY and the network; a restricted key needs the right to read ${right}`;
    return { check, status: error.isForbidden ? "warning" : "problem", message: error.message, advice };
  }
}

async function checkEndpoint(endpoints: WebhookEndpoints): Promise<Result> {
  const found = await endpoints.find();
  const [endpoint] = found;
  const { url } = endpoints;
  const fix = "run 'vx payments setup'";
  if (!endpoint) {
    const advice = `${fix}; VX_PUBLIC_URL must be the address at which Stripe reaches the server`;
    return { status: "problem", message: `Stripe has no webhook endpoint with the address ${url}`, advice };
  }
  if (found.length > 1) {
    const message = `Stripe has ${found.length} webhook endpoints with the address ${url}, each with a secret of its own`;
    const advice = "delete all but the one whose secret is in VX_STRIPE_WEBHOOK_SECRET";
    return { status: "problem", message, advice };
  }
  const problem = problemOf(endpoint);
  if (problem !== undefined) return { status: "problem", message: `the webhook endpoint ${endpoint.id} ${problem}`, advice: fix };
  const mode = endpoint.isLive ? "live" : "test";
  return {
    status: "ok",
    message: `the webhook endpoint ${endpoint.id} (${mode} mode) gets all events of payments`,
  };
}

function problemOf({ isEnabled, missing }: Endpoint): string | undefined {
  if (!isEnabled) return "is disabled";
  return missing.length > 0 ? `does not get ${missing.join(", ")}` : undefined;
}

/** Without saved settings, Stripe refuses to open the portal. */
async function checkPortal(client: StripeClient): Promise<Result> {
  const { data } = await client.request(({ billingPortal }) =>
    billingPortal.configurations.list({ active: true, is_default: true, limit: 1 }),
  );
  if (data.length > 0) return { status: "ok", message: "its settings are saved" };
  return {
    status: "warning",
    message: "its settings are not saved, so members cannot open “Cards and tax ids” on the customer page",
    advice: "save the settings of the customer portal in Stripe's dashboard",
  };
}
