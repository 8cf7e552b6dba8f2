// Holds and settles generations through the store, in this process.

import type { Cells } from "../src/database/driver/cells.ts";
import { tokenPrices, usageOf } from "../src/domain/price.ts";
import { DEFAULT_SCOPES } from "../src/domain/scope.ts";
import type { HoldOutcome } from "../src/generations/bill-statement.ts";
import type { Checkout } from "./checkout.ts";
import type { Payer } from "./payers.ts";

type BillingModule = typeof import("../src/generations/billing.ts");
type ClockModule = typeof import("../src/database/driver/database-clock.ts");
type CredentialsModule = typeof import("../src/domain/credentials.ts");
type IdsModule = typeof import("../src/domain/ids.ts");
type LaneModule = typeof import("../src/domain/lane.ts");

/** Holds and settles a call of the payer with this number. */
export async function createGenerations(
  checkout: Checkout,
  database: Cells,
  payers: readonly Payer[],
): Promise<(at: number) => Promise<void>> {
  const { Billing } = await checkout.load<BillingModule>("src/generations/billing.ts");
  const { DatabaseClock } = await checkout.load<ClockModule>("src/database/driver/database-clock.ts");
  const { fingerprintOf } = await checkout.load<CredentialsModule>("src/domain/credentials.ts");
  const { createIds } = await checkout.load<IdsModule>("src/domain/ids.ts");
  const { laneOfId } = await checkout.load<LaneModule>("src/domain/lane.ts");
  const ids = createIds(Date.now);
  const clock = new DatabaseClock(() => performance.now());
  const clocks = database.all.map(() => new DatabaseClock(() => performance.now()));
  // Older checkouts have one clock.
  const options = { serverId: "bench", clock, clocks, pipelines: 1, maxWaiting: 16_384 };
  const store = new Billing(database, options);
  return async (at: number) => {
    const { accountId, keyId, secret } = payers[at] as Payer;
    const generationId = ids.generation(laneOfId(accountId));
    const admitted = { ...ADMITTED, fingerprint: fingerprintOf(secret) };
    const held: HoldOutcome = await store.hold({ ...HOLD, generationId, accountId, keyId, admitted });
    if (held.outcome !== "held") throw new Error(`the hold was ${held.outcome}`);
    const ended = await store.end({ generationId, accountId, charge: { ...CHARGE, keyId } });
    if (ended.outcome !== "settled") throw new Error(`the hold was ${ended.outcome}`);
  };
}

const HOLD = { amountMicros: 4_000n, tokens: 100, model: "m", user: "", seconds: 600, idempotency: undefined };

/** A new key. */
const ADMITTED = { scopes: DEFAULT_SCOPES, allowedCidrs: undefined, priceListVersion: 0 };

const CHARGE = {
  amountMicros: 18n,
  reason: "Generation with vx-sandbox-small: 12 tokens in, 40 tokens out",
  requestId: "req_0123456789abcdef0123456789abcdef",
  traceId: "",
  user: "",
  model: "vx-sandbox-small",
  usage: usageOf({ inputTokens: 12, outputTokens: 40 }),
  prices: tokenPrices(100_000n, 400_000n),
  priceVersion: 1,
  priceListVersion: 0,
  upstream: "sandbox",
  upstreamCostMicros: 5n,
  answer: undefined,
};
