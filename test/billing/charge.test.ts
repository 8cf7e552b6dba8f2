import { describe, expect, test } from "vitest";
import { chargeOf, type Ended, type Ending, type Stop } from "../../src/billing/charge.ts";
import { DomainError } from "../../src/domain/errors.ts";
import type { Output } from "../../src/domain/output.ts";
import { outputTokensOf, usageOf } from "../../src/domain/usage.ts";
import { Progress } from "../../src/upstreams/upstream.ts";
import { modelOf, promptOf } from "../support/samples.ts";

const EMPTY: Output = { text: "", reasoning: [], toolCalls: [] };
const DELIVERED: Output = { ...EMPTY, text: "four" };

/** A token for each character. */
const tokens = {
  countPrompt: () => 7,
  countTexts: async (texts: readonly string[]) => texts.join("").length,
  estimatePrompt: async () => 7,
  estimateTexts: async () => 0,
};

type How = { streamed: boolean; wasSent: boolean; unread?: string; output?: Output; report?: Progress["report"] };

async function chargedFor(ending: Ending, { streamed, wasSent, unread = "", output = EMPTY, report }: How) {
  const progress = Object.assign(new Progress(), { wasSent, unread, report });
  const size = { promptTokens: 7, images: 0, counted: true, inputTokens: 100, maxTokens: 100, minTokens: 1, amountMicros: 0n };
  const spec = {
    id: "gen_1",
    key: { accountId: "acct_1", keyId: "key_1" },
    requestId: "req_1",
    trace: undefined,
    user: "",
    model: modelOf(),
    prompt: promptOf({ streamed }),
    size,
    idempotencyKey: undefined,
  } as unknown as Ended["spec"];
  const charge = await chargeOf({ spec, ending, progress, output }, tokens);
  return charge && { output: outputTokensOf(charge.usage), input: charge.usage.input, reason: charge.reason };
}

const stopped = (why: Stop): Ending => ({ kind: "stopped", why, error: new DomainError("internal") });

/** Each row of the table of stops. */
const PAID_ONCE_SENT: readonly [Stop, string][] = [
  ["disconnected", "the caller disconnected"],
  ["deadline_exceeded", "the caller's deadline passed"],
  ["too_long", "stopped after 10 minutes"],
  ["revoked_api_key", "stopped, the API key was revoked"],
  ["insufficient_scope", "stopped, the API key lost its scope"],
  ["account_suspended", "stopped, the account was suspended"],
];

describe.each(PAID_ONCE_SENT)("a generation that ends with %s", (why, text) => {
  test("is free before its request was sent", async () => {
    expect(await chargedFor(stopped(why), { streamed: true, wasSent: false })).toBeUndefined();
    expect(await chargedFor(stopped(why), { streamed: false, wasSent: false })).toBeUndefined();
  });

  test.each([true, false])("pays for the input and all produced output (streamed: %s)", async (streamed) => {
    const nothing = await chargedFor(stopped(why), { streamed, wasSent: true });
    expect(nothing).toMatchObject({ input: 7, output: 0, reason: expect.stringContaining(`(${text})`) });
    const some = { streamed, wasSent: true, output: DELIVERED, unread: "unread" };
    expect(await chargedFor(stopped(why), some)).toMatchObject({ input: 7, output: 10 });
  });

  test("pays what the upstream reports for all of it", async () => {
    const report = { usage: usageOf({ inputTokens: 9, outputTokens: 50 }), isFinal: true };
    const how = { streamed: true, wasSent: true, output: DELIVERED, unread: "unread", report };
    expect(await chargedFor(stopped(why), how)).toMatchObject({ input: 9, output: 50 });
  });
});

describe.each<[string, Ending, string]>([
  ["the server stops", stopped("unavailable"), "stopped, the server shut down"],
  ["the upstream fails", { kind: "failed", error: new DomainError("upstream_error") }, "the upstream failed"],
])("a generation during which %s", (_, ending, text) => {
  test("is free if nothing was delivered", async () => {
    expect(await chargedFor(ending, { streamed: true, wasSent: true, unread: "unread" })).toBeUndefined();
    const unary = { streamed: false, wasSent: true, output: DELIVERED, unread: "unread" };
    expect(await chargedFor(ending, unary)).toBeUndefined();
  });

  test("pays for the delivered pieces of a stream, and for nothing that was not delivered", async () => {
    const report = { usage: usageOf({ inputTokens: 9, outputTokens: 50 }), isFinal: true };
    const how = { streamed: true, wasSent: true, output: DELIVERED, unread: "unread", report };
    const reason = expect.stringContaining(`(${text})`);
    expect(await chargedFor(ending, how)).toMatchObject({ input: 9, output: 4, reason });
  });
});
