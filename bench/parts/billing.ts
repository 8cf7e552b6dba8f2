// Durable holds and settlements directly against the store, batched, over many accounts and over one.
import { tokenPrices } from "../../src/domain/price.ts";
import { usageOf } from "../../src/domain/usage.ts";
import type { HoldOutcome } from "../../src/store/bill-item.ts";
import type { Checkout } from "../checkout.ts";
import { type Load, runCallers } from "../load.ts";
import type { Part } from "../part.ts";
import { createPayers, type Payer } from "../payers.ts";
import { type Server, startServer } from "../server.ts";
import { openStore } from "../store.ts";

const ACCOUNTS = 1_000;
const CALLERS = 256;
const SECONDS = 2;

export const billing: Part<{ many: Load; hot: Load; alone: Load }> = {
  rounds: 3,
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const generate = await openBilling(checkout, cleanup, server, ACCOUNTS);
    const anyAccount = () => generate(Math.floor(Math.random() * ACCOUNTS));
    return {
      many: () => runCallers(CALLERS, SECONDS, anyAccount),
      hot: () => runCallers(CALLERS, SECONDS, () => generate(0)),
      alone: () => runCallers(1, SECONDS, anyAccount),
    };
  },
  figures: [
    {
      name: `hold and settle, ${CALLERS} callers, ${ACCOUNTS} accounts`,
      unit: "/s",
      value: (r) => r.many.perSecond,
    },
    { name: `hold and settle, ${CALLERS} callers, one account`, unit: "/s", value: (r) => r.hot.perSecond },
    {
      name: "one account / many accounts",
      unit: "×",
      min: 0.8,
      value: (r) => r.hot.perSecond / r.many.perSecond,
    },
    { name: "hold and settle, one caller, p50", unit: "ms", value: (r) => r.alone.p50Ms },
  ],
};

/** Holds and settles a call of the account with this number. */
export async function openBilling(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  server: Server,
  accounts: number,
): Promise<(at: number) => Promise<void>> {
  const { Billing } =
    await checkout.load<typeof import("../../src/store/billing.ts")>("src/store/billing.ts");
  const { DatabaseClock } = await checkout.load<typeof import("../../src/store/driver/database-clock.ts")>(
    "src/store/driver/database-clock.ts",
  );
  const { typeIds } = await checkout.load<typeof import("../../src/app/type-ids.ts")>("src/app/type-ids.ts");
  const { laneOfId } = await checkout.load<typeof import("../../src/domain/lane.ts")>("src/domain/lane.ts");
  const payers = await createPayers(server, accounts);
  const pool = await openStore(checkout, cleanup, { dataDir: server.dataDir, connections: 1 });
  const clock = new DatabaseClock(() => performance.now());
  // Older checkouts have one clock.
  const options = { serverId: "bench", clock, clocks: [clock], pipelines: 1, maxWaiting: 16_384 };
  const store = new Billing(pool, options);
  return async (at: number) => {
    const { accountId, keyId } = payers[at] as Payer;
    const holdId = typeIds.generation(laneOfId(accountId));
    const held: HoldOutcome = await store.hold({ ...HOLD, holdId, accountId, keyId });
    if (held.outcome !== "held") throw new Error(`the hold was ${held.outcome}`);
    const ended = await store.end({ holdId, accountId, charge: { ...CHARGE, keyId } });
    if (ended.outcome !== "settled") throw new Error(`the hold was ${ended.outcome}`);
  };
}

const HOLD = { amountMicros: 4_000n, seconds: 600, idempotency: undefined };

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
  answer: undefined,
};
