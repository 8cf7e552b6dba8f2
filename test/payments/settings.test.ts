import { expect, test } from "vitest";
import { readConfig } from "../../src/app/settings/config.ts";

const SECRETS = { VX_STRIPE_SECRET_KEY: "sk_test_1", VX_STRIPE_WEBHOOK_SECRET: "whsec_1" };

test("without the secrets of Stripe, the server takes no payments", () => {
  expect(readConfig({})).toMatchObject({ payments: undefined, topUpUrl: undefined });
});

test("with them, customers pay 5 to 1,000 dollars, and add credit on the customer page", () => {
  expect(readConfig({ ...SECRETS, VX_HOST: "::1", PORT: "9000" })).toMatchObject({
    payments: {
      minMicros: 5_000_000n,
      maxMicros: 1_000_000_000n,
      stripe: { secretKey: "sk_test_1", api: undefined, invoices: false },
    },
    topUpUrl: "http://[::1]:9000/account",
  });
  expect(readConfig({ ...SECRETS, VX_STRIPE_INVOICES: "on" }).payments?.stripe.invoices).toBe(true);
  const own = { VX_TOP_UP_URL: "https://pay.example/", VX_PUBLIC_URL: "https://api.example" };
  expect(readConfig({ ...SECRETS, ...own })).toMatchObject({
    publicUrl: "https://api.example",
    topUpUrl: "https://pay.example/",
  });
});

test.each([
  [{ VX_STRIPE_SECRET_KEY: "sk_test_1" }, "VX_STRIPE_SECRET_KEY, VX_STRIPE_WEBHOOK_SECRET: set both of them, or none"],
  [{ VX_STRIPE_WEBHOOK_SECRET: "whsec_1" }, "set both of them, or none"],
  [{ ...SECRETS, VX_STRIPE_SECRET_KEY: "" }, "VX_STRIPE_SECRET_KEY: must not be empty"],
  [{ ...SECRETS, VX_STRIPE_WEBHOOK_SECRET: "" }, "VX_STRIPE_WEBHOOK_SECRET: must not be empty"],
  [{ ...SECRETS, VX_STRIPE_SECRET_KEY: "pk_live_1" }, "VX_STRIPE_SECRET_KEY: must begin with sk_ or rk_"],
  [{ ...SECRETS, VX_STRIPE_WEBHOOK_SECRET: "we_1" }, "VX_STRIPE_WEBHOOK_SECRET: must begin with whsec_"],
  [{ ...SECRETS, VX_TOP_UP_MIN: "0.001" }, "VX_TOP_UP_MIN: must have at most two decimals"],
  [{ ...SECRETS, VX_CURRENCY: "JPY", VX_TOP_UP_MAX: "999.50" }, "VX_TOP_UP_MAX: must have no decimals"],
  [{ ...SECRETS, VX_TOP_UP_MIN: "0" }, "VX_TOP_UP_MIN: must be an amount above 0"],
  [{ VX_CURRENCY: "eur" }, "VX_CURRENCY: must be a code of ISO 4217"],
  [{ VX_CURRENCY: "XXXX" }, "VX_CURRENCY: must be a code of ISO 4217"],
  [{ ...SECRETS, VX_TOP_UP_MIN: "20.00", VX_TOP_UP_MAX: "10.00" }, "VX_TOP_UP_MIN: must not be above VX_TOP_UP_MAX"],
  [{ ...SECRETS, VX_STRIPE_INVOICES: "yes" }, "VX_STRIPE_INVOICES: "],
  [{ ...SECRETS, VX_STRIPE_API: "stripe.example" }, "VX_STRIPE_API: must be a URL"],
  [{ ...SECRETS, VX_PUBLIC_URL: "https://api.example/path" }, "VX_PUBLIC_URL: must be a URL"],
])("%o is an error at start that does not repeat a secret", (env, message) => {
  expect(() => readConfig(env)).toThrow(message);
  expect(() => readConfig(env)).not.toThrow(/pk_live_1|we_1\b/);
});
