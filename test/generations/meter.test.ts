import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Metering } from "../../src/app/create-metering.ts";
import { DomainError } from "../../src/domain/errors.ts";
import { MAX_SETTLE_MS } from "../../src/generations/billing.ts";
import type { Caller } from "../../src/generations/generation-request.ts";
import { MAX_CALL_MS } from "../../src/generations/hold.ts";
import type { AdmittedKey } from "../../src/keys/admit.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import type { UpstreamEvent } from "../../src/upstreams/upstream.ts";
import { createPayer, moneyProblems, type Payer } from "../support/payer.ts";
import { modelOf, requestOf } from "../support/samples.ts";
import { useStore } from "../support/store.ts";
import { startMetering } from "./start-metering.ts";

/** What takes too long, or goes wrong too seldom, to be tested from outside. */

const store = useStore();
let metering: Metering;
let payer: Payer;

beforeEach(async () => {
  // It refuses every text that is not short.
  const tokens = new TokenCounter({ maxPrompts: 0, maxCharacters: 0 });
  const streamEvents: Parameters<typeof startMetering>[2]["streamEvents"] = ({ signal, progress }) => {
    progress.wasSent = true;
    return endless(signal);
  };
  metering = await startMetering(store, () => MODEL, { tokens, streamEvents });
  payer = await createPayer(store.database, 1_000_000n);
});
afterEach(async () => {
  vi.useRealTimers();
  await metering.settle();
  await metering.stop();
  expect(await moneyProblems(store)).toEqual([]);
});

const MODEL = modelOf();
const PIECE = "word ".repeat(1_000);

/** One piece, and then nothing until it is stopped. */
async function* endless(signal: AbortSignal): AsyncGenerator<UpstreamEvent> {
  yield { kind: "text", text: PIECE };
  await new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });
}

function callerOf(signal: AbortSignal, idempotencyKey?: string): Caller {
  return {
    requestId: "req_1",
    trace: undefined,
    key: { ...payer, balanceMicros: 1_000_000n } as AdmittedKey,
    readmit: async () => {
      throw new DomainError("revoked_api_key");
    },
    idempotency: idempotencyKey === undefined ? undefined : { key: idempotencyKey, digest: async () => "digest" },
    signal,
    endReason: () => "disconnected",
    onModel: () => undefined,
    onStart: () => undefined,
  };
}

const REQUEST = requestOf({ messages: [{ role: "user", content: "x".repeat(8_000) }], maxTokens: 5_000 });
const NEVER = new AbortController().signal;

async function rowsOf({ accountId }: Payer) {
  return await store.owner<{ reason: string; input: number; output: number }[]>`
    SELECT reason, input, output FROM vx.ledger WHERE account_id = ${accountId} AND kind = 'generation'`;
}

test("a hold outlives the longest call plus the retries of its settlement", async () => {
  const pieces = await metering.meter.stream(callerOf(NEVER), REQUEST);
  await pieces.next();
  const [hold] = await store.owner<{ seconds: number }[]>`
    SELECT extract(epoch FROM expires_at - clock_timestamp())::float AS seconds
    FROM vx.holds WHERE account_id = ${payer.accountId}`;
  expect((hold?.seconds ?? 0) * 1_000).toBeGreaterThan(MAX_CALL_MS + MAX_SETTLE_MS);
  await pieces.return();
});

test("no call runs for more than ten minutes; the output until then is charged", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const pieces = await metering.meter.stream(callerOf(NEVER), REQUEST);
  expect((await pieces.next()).value).toMatchObject({ delta: { text: PIECE } });
  const rest = pieces.next();
  vi.advanceTimersByTime(599_999);
  vi.advanceTimersByTime(1);
  vi.useRealTimers();
  await expect(rest).rejects.toMatchObject({ reason: "deadline_exceeded" });
  expect(await rowsOf(payer)).toMatchObject([{ reason: expect.stringContaining("stopped after 10 minutes") }]);
});

test("an overloaded counter does not prevent the charge: tokens are estimated from a sample", async () => {
  // Two halves: one has more tokens than characters, the other has few.
  const content = `${"\u00e4\u2192".repeat(4_000)}${"word ".repeat(1_600)}`;
  const request = requestOf({ messages: [{ role: "user", content }], maxTokens: 5_000 });
  const pieces = await metering.meter.stream(callerOf(NEVER), request);
  await pieces.next();
  await pieces.return();
  await metering.settle();
  await using counter = { tokens: new TokenCounter(), [Symbol.asyncDispose]: () => counter.tokens.close() };
  const [row] = await rowsOf(payer);
  const ratio = (row?.input ?? 0) / (await counter.tokens.countPrompt(request));
  // A part of the sample can contain the middle.
  expect(ratio).toBeGreaterThan(0.6);
  expect(ratio).toBeLessThan(1.4);
  expect((row?.output ?? 0) / (await counter.tokens.countTexts([PIECE]))).toBeCloseTo(1, 1);
});

test("at its time limit, the drain also stops generations without a caller, and new ones are refused", async () => {
  const left = new AbortController();
  const pieces = await metering.meter.stream(callerOf(left.signal, "kept"), REQUEST);
  await pieces.next();
  left.abort();
  await pieces.return();
  metering.stopGenerations();
  await metering.settle();
  expect(await rowsOf(payer)).toMatchObject([{ reason: expect.stringContaining("the server shut down") }]);
  await expect(metering.meter.complete(callerOf(NEVER), REQUEST)).rejects.toMatchObject({ reason: "unavailable" });
});

test("a reader that stops before the first piece ends the generation, and its usage is charged", async () => {
  const pieces = await metering.meter.stream(callerOf(NEVER), REQUEST);
  const first = pieces.next();
  await pieces.return();
  expect(await first).toEqual({ done: true, value: undefined });
  await metering.settle();
  expect(await rowsOf(payer)).toMatchObject([{ reason: expect.stringContaining("the caller disconnected") }]);
});

test("a generation whose hold is still being placed is stopped too", async () => {
  const answered = metering.meter.complete(callerOf(NEVER), REQUEST).catch((error: unknown) => error);
  metering.stopGenerations();
  expect(await answered).toMatchObject({ reason: "unavailable" });
  await metering.settle();
  expect(await rowsOf(payer)).toEqual([]);
});

test("a stream whose reader neither reads nor disconnects is settled at the time limit", async () => {
  const pieces = await metering.meter.stream(callerOf(NEVER), REQUEST);
  await pieces.next();
  metering.stopGenerations();
  await metering.settle();
  expect(await rowsOf(payer)).toHaveLength(1);
  await expect(pieces.next()).rejects.toMatchObject({ reason: "unavailable" });
});
