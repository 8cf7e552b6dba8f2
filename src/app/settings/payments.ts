import { currencyOf, type Micros } from "../../domain/money.ts";
import { paymentUnit } from "../../domain/top-up.ts";
import type { StripeSettings } from "../../payments/stripe/stripe-payments.ts";
import { ConfigError } from "../start-error.ts";

/** The settings of payments; undefined if the server takes none. */
type PaymentSettings = {
  readonly stripe: StripeSettings;
  readonly minMicros: Micros;
  readonly maxMicros: Micros;
};

type Values = {
  readonly VX_STRIPE_SECRET_KEY?: string | undefined;
  readonly VX_STRIPE_WEBHOOK_SECRET?: string | undefined;
  readonly VX_STRIPE_API?: string | undefined;
  readonly VX_STRIPE_INVOICES: "on" | "off";
  readonly VX_CURRENCY: string;
  readonly VX_TOP_UP_MIN: Micros;
  readonly VX_TOP_UP_MAX: Micros;
};

/** An empty secret is more likely a mistake than a wish for no payments. */
export function paymentSettings(env: NodeJS.ProcessEnv, values: Values): PaymentSettings | undefined {
  for (const name of ["VX_STRIPE_SECRET_KEY", "VX_STRIPE_WEBHOOK_SECRET"])
    if (env[name] === "") throw new ConfigError(`${name}: must not be empty; leave it out for no payments`);
  const { VX_STRIPE_SECRET_KEY: secretKey, VX_STRIPE_WEBHOOK_SECRET: webhookSecret } = values;
  if (secretKey === undefined && webhookSecret === undefined) return undefined;
  if (secretKey === undefined || webhookSecret === undefined)
    throw new ConfigError(
      "VX_STRIPE_SECRET_KEY, VX_STRIPE_WEBHOOK_SECRET: set both of them, or none; 'vx payments setup' creates the webhook endpoint and prints its secret",
    );
  const { VX_TOP_UP_MIN: minMicros, VX_TOP_UP_MAX: maxMicros, VX_STRIPE_API: api } = values;
  const unit = paymentUnit(currencyOf(values.VX_CURRENCY));
  for (const name of ["VX_TOP_UP_MIN", "VX_TOP_UP_MAX"] as const)
    if (values[name] % unit !== 0n)
      throw new ConfigError(`${name}: must have ${unit === 10_000n ? "at most two" : "no"} decimals`);
  if (minMicros > maxMicros) throw new ConfigError("VX_TOP_UP_MIN: must not be above VX_TOP_UP_MAX");
  const stripe = {
    secretKey,
    webhookSecret,
    api: api === undefined ? undefined : new URL(api),
    invoices: values.VX_STRIPE_INVOICES === "on",
  };
  return { stripe, minMicros, maxMicros };
}
