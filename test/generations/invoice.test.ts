import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Metering } from "../../src/app/create-metering.ts";
import { audit } from "../../src/audit/store.ts";
import type { Model } from "../../src/domain/model.ts";
import { type Usage, usageOf } from "../../src/domain/price.ts";
import type { AdmittedKey } from "../../src/keys/admit.ts";
import { registerPrices, setAccountPrices } from "../../src/prices/store.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { TEST_ACTION } from "../support/action.ts";
import { anyPrices } from "../support/any-prices.ts";
import { createPayer, type Payer } from "../support/payer.ts";
import { runs } from "../support/runs.ts";
import { modelOf, requestOf } from "../support/samples.ts";
import { useOwnStore } from "../support/store.ts";
import { startMetering } from "./start-metering.ts";

const store = useOwnStore();
let metering: Metering;
let tokens: TokenCounter;
let payer: Payer;
/** What the upstream reports, and the model. */
let usage: Usage;
let model: Model;

beforeAll(async () => {
  tokens = new TokenCounter();
  metering = await startMetering(store, () => model, {
    tokens,
    streamEvents: async function* ({ progress }) {
      progress.wasSent = true;
      yield { kind: "text", text: "Hello" };
      yield { kind: "done", finishReason: "stop", usage };
    },
  });
  payer = await createPayer(store.database, 9_000_000_000_000_000n);
});
afterAll(async () => {
  await metering.stop();
  await tokens.close();
});

/** The tokens that the hold of a call covers. */
const INPUT = 10_000;
const OUTPUT = 5_000;

const price = fc.oneof(fc.constant(0n), fc.bigInt(0n, 10n), fc.bigInt(0n, 1_000_000_000_000n));
const prices = anyPrices(price, 3 * OUTPUT);
/** What an account gets on a model: nothing, a discount, or prices of its own. */
const accountPrices = fc.oneof(
  fc.constant({ discount: undefined, prices: undefined }),
  fc.record({ discount: fc.nat(10_000), prices: fc.constant(undefined) }),
  fc.record({ discount: fc.constant(undefined), prices }),
);
/** Details may exceed their totals, and totals may exceed the hold. */
function reports(max: number) {
  const [count, detail] = [fc.nat(max), fc.option(fc.nat(max), { nil: undefined, freq: 1 })];
  const totals = { inputTokens: count, outputTokens: count };
  const details = { cachedInput: detail, cacheWrite: detail, cacheWrite1h: detail, reasoning: detail, imageTokens: detail };
  return fc.record({ ...totals, ...details });
}

async function chargeAfter(images: number, priceListVersion: number) {
  const parts = Array.from({ length: images }, () => ({
    kind: "image" as const,
    image: { kind: "url" as const, url: "https://x.example/a.png" },
    detail: undefined,
  }));
  const key = { ...payer, balanceMicros: 9_000_000_000_000_000n, priceListVersion } as AdmittedKey;
  const caller = {
    ...{ requestId: "req_1", trace: undefined, key, idempotency: undefined, signal: new AbortController().signal },
    readmit: async () => key,
    endReason: () => "disconnected" as const,
    onModel: () => undefined,
    onStart: () => undefined,
  };
  const content = images === 0 ? "Hello" : [...parts, { kind: "text" as const, text: "Hello" }];
  await metering.meter.complete(caller, requestOf({ messages: [{ role: "user", content }], maxTokens: OUTPUT }));
  const [row] = await store.owner<{ amount: string }[]>`
    SELECT -amount_micros AS amount FROM vx.ledger WHERE account_id = ${payer.accountId} ORDER BY seq DESC LIMIT 1`;
  return BigInt(row?.amount ?? -1);
}

test("a charge is the upstream's invoice, or less where the usage exceeds the hold", async () => {
  await fc.assert(
    fc.asyncProperty(prices, accountPrices, reports(2 * OUTPUT), fc.nat(3), async (prices, own, reported, images) => {
      usage = usageOf(reported);
      const change = { accountId: payer.accountId, model: "m", ...own };
      const { version } = await setAccountPrices(store.database, TEST_ACTION, change);
      const unregistered = modelOf({
        capabilities: ["images"],
        imageTokens: 1,
        promptOverheadTokens: { base: INPUT, perMessage: 0 },
        prices,
      });
      [model] = (await registerPrices(store.database, [unregistered])) as [Model];
      const charged = await chargeAfter(images, version);
      const invoice = invoiceOf(own.prices ?? prices, own.discount ?? 0, reported, images);
      if (reported.outputTokens <= OUTPUT) expect(charged).toBe(invoice);
      else expect(charged).toBeLessThanOrEqual(invoice);
    }),
    { numRuns: runs(100) },
  );
  const { findings } = await audit(store.database, new AbortController().signal);
  expect(findings).toEqual([]);
});

type Report = ReturnType<typeof reports> extends fc.Arbitrary<infer Value> ? Value : never;

/** A whole number over another one, so that nothing is rounded before the end. */
type Fraction = readonly [over: bigint, under: bigint];

/**
 * What the operator of the upstream would bill at the same prices, computed in fractions without the code under test. A discounted price
 * is rounded up to a micro, and so is the sum of all tokens.
 */
function invoiceOf(prices: Model["prices"], discount: number, report: Report, images: number): bigint {
  const list = [{ aboveInputTokens: -1, ...prices }, ...prices.tiers].findLast(
    ({ aboveInputTokens }) => aboveInputTokens < report.inputTokens,
  );
  if (!list) throw new Error("the first list has no bound");
  const up = ([over, under]: Fraction) => over / under + (over % under === 0n ? 0n : 1n);
  const own = (micros: bigint) => up([micros * BigInt(10_000 - discount), 10_000n]);
  const cached = Math.min(report.cachedInput ?? 0, report.inputTokens);
  const written = Math.min(report.cacheWrite ?? 0, report.inputTokens - cached);
  const kept = Math.min(report.cacheWrite1h ?? 0, written);
  const reasoning = Math.min(report.reasoning ?? 0, report.outputTokens);
  const lines: [number, bigint][] = [
    [report.inputTokens - cached - written, own(list.input)],
    [cached, own(list.cachedInput)],
    [written - kept, own(list.cacheWrite)],
    [kept, own(list.cacheWrite1h)],
    [report.outputTokens - reasoning, own(list.output)],
    [reasoning, own(list.reasoning)],
  ];
  const millionths = lines.reduce((sum, [count, micros]) => sum + BigInt(count) * micros, 0n);
  return up([millionths, 1_000_000n]) + BigInt(images) * own(list.image) + own(list.request);
}
