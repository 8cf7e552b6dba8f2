import { describe, expect, test } from "vitest";
import { DomainError } from "../../src/domain/errors.ts";
import type { Output } from "../../src/domain/output.ts";
import type { Usage } from "../../src/domain/price.ts";
import { chargeOf, type Ended, type Ending, type Stop } from "../../src/generations/charge.ts";
import { canBecome, type GenerationState } from "../../src/generations/generation.ts";
import { Progress } from "../../src/upstreams/upstream.ts";
import { NO_USAGE } from "../support/no-usage.ts";
import { modelOf, promptOf } from "../support/samples.ts";

const KINDS: GenerationState["kind"][] = ["running", "detached", "settling", "settled", "unsettled"];

test("a generation settles once, and is detached only while it runs", () => {
  const legal = KINDS.flatMap((from) => KINDS.filter((to) => canBecome(from, to)).map((to) => `${from} ${to}`));
  expect(legal).toEqual(["running detached", "running settling", "detached settling", "settling settled", "settling unsettled"]);
});

const EMPTY: Output = { text: "", reasoning: [], toolCalls: [] };
const DELIVERED: Output = { ...EMPTY, text: "four" };

/** A token for each character. */
const tokens = {
  countPrompt: () => 7,
  countTexts: async (texts: readonly string[]) => texts.join("").length,
  estimatePrompt: async () => 7,
  estimateTexts: async () => 0,
};

type How = { streamed?: boolean; wasSent?: boolean; unread?: string; output?: Output; report?: Progress["report"] };

/** The charge for a call whose hold covers 100 tokens of input and as many of output. */
async function chargedFor(ending: Ending, { streamed = true, wasSent = true, unread = "", output = EMPTY, report }: How = {}) {
  const progress = Object.assign(new Progress(), { wasSent, unread, report });
  const size = { promptTokens: 7, images: 0, counted: true, inputTokens: 100, maxTokens: 100 };
  const key = { accountId: "acct_1", keyId: "key_1" };
  const spec = { id: "gen_1", key, requestId: "req_1", user: "", model: modelOf(), prompt: promptOf({ streamed }), size };
  return await chargeOf({ spec: spec as unknown as Ended["spec"], ending, progress, output }, tokens);
}

const reported = (usage: Partial<Usage>, isFinal = true) => ({ usage: { ...NO_USAGE, ...usage }, isFinal });
const stopped = (why: Stop): Ending => ({ kind: "stopped", why, error: new DomainError("internal") });
const failed: Ending = { kind: "failed", error: new DomainError("upstream_error") };

/** Each row of the table of stops. */
describe.each<[Stop, string]>([
  ["disconnected", "the caller disconnected"],
  ["deadline_exceeded", "the caller's deadline passed"],
  ["too_long", "stopped after 10 minutes"],
  ["revoked_api_key", "stopped, the API key was revoked"],
  ["insufficient_scope", "stopped, the API key lost its scope"],
  ["account_suspended", "stopped, the account was suspended"],
])("a generation that ends with %s", (why, text) => {
  test.each([true, false])(
    "is free before its request was sent, then pays for all that was produced (streamed: %s)",
    async (streamed) => {
      expect(await chargedFor(stopped(why), { streamed, wasSent: false })).toBeUndefined();
      const nothing = await chargedFor(stopped(why), { streamed });
      expect(nothing).toMatchObject({ usage: { input: 7, output: 0 }, reason: expect.stringContaining(`(${text})`) });
      const some = { streamed, output: DELIVERED, unread: "unread" };
      expect(await chargedFor(stopped(why), some)).toMatchObject({ usage: { input: 7, output: 10 } });
    },
  );
});

test.each<[string, Ending, string]>([
  ["the server stops", stopped("unavailable"), "stopped, the server shut down"],
  ["the upstream fails", failed, "the upstream failed"],
])(
  "a generation during which %s pays for the delivered pieces of a stream, and for nothing that was not delivered",
  async (_, ending, text) => {
    expect(await chargedFor(ending, { unread: "unread" })).toBeUndefined();
    expect(await chargedFor(ending, { streamed: false, output: DELIVERED, unread: "unread" })).toBeUndefined();
    for (const isFinal of [true, false]) {
      const charge = await chargedFor(ending, {
        output: DELIVERED,
        unread: "unread",
        report: reported({ input: 9, output: 50 }, isFinal),
      });
      expect(charge).toMatchObject({ usage: { input: 9, output: 4 }, reason: expect.stringContaining(`(${text})`) });
    }
  },
);

test.each<[string, How, Partial<Usage>]>([
  ["whole report, whatever was counted", { report: reported({ input: 40, output: 1 }) }, { input: 40, output: 1 }],
  [
    "whole report, also of what was not read",
    { unread: "unread", report: reported({ input: 9, output: 50 }) },
    { input: 9, output: 50 },
  ],
  [
    "report that is higher than the count",
    { report: reported({ input: 40, output: 1, reasoning: 60 }, false) },
    { output: 1, reasoning: 60 },
  ],
  [
    "count that is higher than the report",
    { report: reported({ input: 3, cachedInput: 37, output: 1 }, false) },
    { input: 3, cachedInput: 37, output: 4, reasoning: 0 },
  ],
  ["count of the prompt, if the report has none", { report: reported({ input: 0, output: 1 }, false) }, { input: 7, output: 4 }],
  ["hold at most", { report: reported({ input: 1_000, output: 1_000 }) }, { input: 100, output: 100 }],
])("a generation that ends before its upstream does is charged for the %s", async (_, how, usage) => {
  expect(await chargedFor(stopped("disconnected"), { output: DELIVERED, ...how })).toMatchObject({ usage });
});

test("usage below 0 is not charged", async () => {
  const done = { kind: "done", finishReason: "stop", usage: { ...NO_USAGE, input: -1, output: 1 } } as const;
  const invariant = "the usage is within the size of the hold";
  await expect(chargedFor({ kind: "completed", done })).rejects.toMatchObject({ reason: "internal", invariant });
});

test("reasoning that the upstream did not report is counted, even if it was not read", async () => {
  const reasoning = [{ text: "two", signature: undefined, encrypted: undefined }];
  const usageFor = async (text: string) =>
    (await chargedFor(stopped("disconnected"), { unread: "unread", output: { ...EMPTY, text, reasoning } }))?.usage;
  expect(await usageFor("")).toMatchObject({ input: 7, output: 0, reasoning: 9 });
  expect(await usageFor("reply")).toMatchObject({ input: 7, output: 11, reasoning: 3 });
});
