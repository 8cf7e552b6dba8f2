import { type Config, readConfig } from "../app/settings/config.ts";
import { ProviderError } from "../payments/provider.ts";
import { StripeClient } from "../payments/stripe/stripe-client.ts";
import { type Endpoint, WebhookEndpoints } from "../payments/stripe/webhook-endpoint.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { printResult, visible } from "./output.ts";
import { flag } from "./parameters.ts";
import type { JsonOption } from "./print.ts";
import { command, noun } from "./row.ts";
import { shell } from "./shell.ts";
import { orUsageFailure } from "./target.ts";

const EXAMPLES = [
  "VX_PUBLIC_URL=https://api.example.com VX_STRIPE_SECRET_KEY=sk_… vx payments setup",
  "vx payments setup --json",
];

export const row = noun(EXAMPLES, {
  setup: command({
    about:
      "Create the webhook endpoint at Stripe that tells the server about payments, or add the events that an existing one lacks. Uses the settings of the server; VX_STRIPE_WEBHOOK_SECRET can still be unset.",
    parameters: { json: flag("--json", "print the endpoint, what changed, and the secret of a new endpoint as JSON") },
    examples: [...EXAMPLES],
    run: setUp,
  }),
});

type Result = {
  readonly endpoint: Endpoint;
  readonly change: "created" | "updated" | "none";
  /** The events that the endpoint lacked. */
  readonly added: readonly string[];
  /** Only of a new endpoint. */
  readonly secret?: string;
};

async function setUp({ json }: JsonOption): Promise<void> {
  const { payments, publicUrl, isPublicUrlSet } = readSettings(shell.env);
  if (!payments || !isPublicUrlSet) {
    const [name, what] = payments
      ? ["VX_PUBLIC_URL", "the address at which Stripe reaches the server, such as https://api.example.com"]
      : ["VX_STRIPE_SECRET_KEY", "the secret key of your Stripe account"];
    throw usageFailure(`invalid setting: ${name}: must be ${what}`);
  }
  const { stripe } = payments;
  const endpoints = new WebhookEndpoints(new StripeClient(stripe), publicUrl, stripe.invoices);
  const result = await prepare(endpoints).catch((error: unknown) => {
    if (!(error instanceof ProviderError)) throw error;
    throw new CommandFailure(
      `${error.message}; check VX_STRIPE_SECRET_KEY: a restricted key needs the right to write Webhook Endpoints`,
    );
  });
  const { endpoint, ...rest } = result;
  const { id, isLive, events } = endpoint;
  const shown = { id, url: endpoints.url, live: isLive, events };
  await printResult(json, { endpoint: shown, ...rest }, textOf(result, endpoints.url));
}

/** The settings of the server, which does not have the secret of an endpoint that does not exist yet. */
function readSettings(env: NodeJS.ProcessEnv): Config {
  const { VX_STRIPE_SECRET_KEY: key, VX_STRIPE_WEBHOOK_SECRET: secret } = env;
  const isNew = key !== undefined && key !== "" && (secret === undefined || secret === "");
  return orUsageFailure(() => readConfig(isNew ? { ...env, VX_STRIPE_WEBHOOK_SECRET: "whsec_unknown" } : env));
}

async function prepare(endpoints: WebhookEndpoints): Promise<Result> {
  const [endpoint, other] = await endpoints.find();
  if (!endpoint) return { ...(await endpoints.create()), change: "created", added: [] };
  if (other) {
    throw new CommandFailure(
      `Stripe has several webhook endpoints with the address ${endpoints.url}, each with a secret of its own: ${endpoint.id} and ${other.id}; delete all but the one whose secret is in VX_STRIPE_WEBHOOK_SECRET`,
    );
  }
  if (endpoint.isEnabled && endpoint.missing.length === 0) return { endpoint, change: "none", added: [] };
  return { endpoint: await endpoints.repair(endpoint), change: "updated", added: endpoint.missing };
}

function textOf({ endpoint, change, added, secret }: Result, url: string): string {
  const name = `the webhook endpoint ${visible(endpoint.id)} for ${url} (${endpoint.isLive ? "live" : "test"} mode)`;
  if (change === "created") {
    return `Created ${name} with ${endpoint.events.length} events.
Set its secret and restart the servers. Stripe shows the secret only once:
VX_STRIPE_WEBHOOK_SECRET=${visible(secret ?? "")}
`;
  }
  const hint = shell.env.VX_STRIPE_WEBHOOK_SECRET
    ? ""
    : "VX_STRIPE_WEBHOOK_SECRET is not set: copy the signing secret of the endpoint from Stripe's dashboard, or delete the endpoint there and run this command again.\n";
  const state = added.length > 0 ? `Added to ${name}: ${added.join(", ")}.` : `Enabled ${name}.`;
  return `${change === "updated" ? state : `Nothing to do: ${name} is enabled and has all events.`}\n${hint}`;
}
