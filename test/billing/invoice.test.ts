import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMetering, type Metering } from "../../src/app/create-metering.ts";
import type { Model } from "../../src/domain/model.ts";
import { type Usage, usageOf } from "../../src/domain/usage.ts";
import type { AdmittedKey } from "../../src/store/admit.ts";
import { audit } from "../../src/store/audit.ts";
import { registerPrices, setAccountPrices } from "../../src/store/prices.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { TEST_ACTION } from "../support/action.ts";
import { createPayer, type Payer } from "../support/payer.ts";
import { runs } from "../support/runs.ts";
import { modelOf, requestOf } from "../support/samples.ts";
import { clock, useOwnStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const store = useOwnStore();
let metering: Metering;
let tokens: TokenCounter;
let payer: Payer;
/** What the upstream reports, and the model. */
let usage: Usage;
let model: Model;

beforeAll(async () => {
  const { database } = store;
  tokens = new TokenCounter();
  metering = createMetering({
    databases: { single: database, billing: database, monitor: database, clocks: [clock] } as never,
    topUpUrl: undefined,
    pipelines: 1,
    models: { get: () => model, list: () => [model] },
    streamEvents: async function* ({ progress }) {
      progress.wasSent = true;
      yield { kind: "text", text: "Hello" };
      yield { kind: "done", finishReason: "stop", usage };
    },
    tokens,
    ids: typeIds,
    log: createLog("silent"),
    metrics: createMetrics("test"),
  });
  await metering.start();
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
const rates = {
  input: price,
  cachedInput: price,
  cacheWrite: price,
  cacheWrite1h: price,
  output: price,
  reasoning: price,
  image: price,
  request: price,
};
const tiers = fc
  .uniqueArray(fc.record({ aboveInputTokens: fc.integer({ min: 1, max: 3 * OUTPUT }), ...rates }), {
    maxLength: 3,
    selector: ({ aboveInputTokens }) => aboveInputTokens,
  })
  .map((list) => list.toSorted((one, other) => one.aboveInputTokens - other.aboveInputTokens));
const prices = fc.record({ ...rates, tiers });
/** What an account gets on a model: nothing, a discount, or prices of its own. */
const accountPrices = fc.oneof(
  fc.constant({ discount: undefined, prices: undefined }),
  fc.record({ discount: fc.nat(10_000), prices: fc.constant(undefined) }),
  fc.record({ discount: fc.constant(undefined), prices }),
);
/** Details may exceed their totals, and totals may exceed the hold. */
const reports = (max: number) =>
  fc.record(
    {
      inputTokens: fc.nat(max),
      outputTokens: fc.nat(max),
      cachedInput: fc.nat(max),
      cacheWrite: fc.nat(max),
      cacheWrite1h: fc.nat(max),
      reasoning: fc.nat(max),
      imageTokens: fc.nat(max),
    },
    { requiredKeys: ["inputTokens", "outputTokens"] },
  );

async function chargeAfter(images: number, priceListVersion: number) {
  const parts = Array.from({ length: images }, () => ({
    kind: "image" as const,
    image: { kind: "url" as const, url: "https://x.example/a.png" },
    detail: undefined,
  }));
  const key = { ...payer, balanceMicros: 9_000_000_000_000_000n, priceListVersion } as AdmittedKey;
  await metering.meter.complete(
    {
      requestId: "req_1",
      trace: undefined,
      key,
      readmit: async () => key,
      idempotency: undefined,
      signal: new AbortController().signal,
      endReason: () => "disconnected",
      onModel: () => undefined,
      onStart: () => undefined,
    },
    requestOf({
      messages: [{ role: "user", content: images === 0 ? "Hello" : [...parts, { kind: "text", text: "Hello" }] }],
      maxTokens: OUTPUT,
    }),
  );
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

type Report = {
  inputTokens: number;
  outputTokens: number;
  cachedInput?: number;
  cacheWrite?: number;
  cacheWrite1h?: number;
  reasoning?: number;
};

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
