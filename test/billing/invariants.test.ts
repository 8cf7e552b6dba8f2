import { describe, expect, test } from "vitest";
import { chargeOf, type Ended, type Ending, type GenerationSpec } from "../../src/billing/charge.ts";
import { canBecome, type GenerationState } from "../../src/billing/generation.ts";
import type { Usage } from "../../src/domain/usage.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { Progress } from "../../src/upstreams/upstream.ts";
import { NO_USAGE } from "../support/no-usage.ts";
import { modelOf, promptOf } from "../support/samples.ts";

const KINDS: GenerationState["kind"][] = ["running", "detached", "settling", "settled", "unsettled"];

test("a generation settles once, and is detached only while it runs", () => {
  const legal = KINDS.flatMap((from) => KINDS.filter((to) => canBecome(from, to)).map((to) => `${from} ${to}`));
  expect(legal).toEqual(["running detached", "running settling", "detached settling", "settling settled", "settling unsettled"]);
});

test("usage below 0 is not charged", async () => {
  const usage = { ...NO_USAGE, input: -1, output: 1 };
  const size = { inputTokens: 10, maxTokens: 10 };
  const ended: Ended = {
    spec: { id: "gen_1", size, key: {}, model: modelOf(), prompt: promptOf() } as GenerationSpec,
    ending: { kind: "completed", done: { kind: "done", finishReason: "stop", usage } },
    progress: new Progress(),
    output: { text: "", reasoning: [], toolCalls: [] },
  };
  const invariant = "the usage is within the size of the hold";
  expect(() => chargeOf(ended, new TokenCounter())).toThrow(expect.objectContaining({ reason: "internal", invariant }));
});

test("reasoning that the upstream did not report is counted, even if it was not read", async () => {
  const progress = new Progress();
  progress.unread = " unread words";
  progress.wasSent = true;
  const size = { inputTokens: 10, maxTokens: 100, promptTokens: 5, counted: true, images: 0 };
  const spec = { id: "gen_1", size, key: {}, model: modelOf(), prompt: promptOf() } as GenerationSpec;
  const reasoning = [{ text: "two words", signature: undefined, encrypted: undefined }];
  const stopped = { kind: "stopped", why: "disconnected", error: undefined } as const;
  const chargeFor = async (text: string) =>
    (await chargeOf({ spec, ending: stopped, progress, output: { text, reasoning, toolCalls: [] } }, new TokenCounter()))?.usage;
  expect(await chargeFor("")).toMatchObject({ input: 5, output: 0, reasoning: 4 });
  expect(await chargeFor("reply")).toMatchObject({ input: 5, output: 3, reasoning: 2 });
});

describe("a generation that ends before its upstream does", () => {
  const size = { inputTokens: 100, maxTokens: 100, promptTokens: 5, counted: true, images: 0 };
  const spec = { id: "gen_1", size, key: {}, model: modelOf(), prompt: promptOf({ streamed: true }) } as GenerationSpec;
  // Two tokens.
  const output = { text: "two words", reasoning: [], toolCalls: [] };
  const disconnected = { kind: "stopped", why: "disconnected", error: undefined } as const;
  const shutDown = { kind: "stopped", why: "unavailable", error: undefined } as const;
  const failed = { kind: "failed", error: new Error("no") } as const;

  function chargedFor(ending: Ending, usage: Partial<Usage>, isFinal: boolean) {
    const progress = new Progress();
    progress.wasSent = true;
    progress.report = { usage: { ...NO_USAGE, ...usage }, isFinal };
    return chargeOf({ spec, ending, progress, output }, new TokenCounter());
  }

  test.each([
    ["whole report, whatever was counted", disconnected, { input: 40, output: 1 }, true, { input: 40, output: 1 }],
    [
      "report that is higher than the count",
      disconnected,
      { input: 40, output: 1, reasoning: 60 },
      false,
      { input: 40, output: 1, reasoning: 60 },
    ],
    [
      "count that is higher than the report",
      disconnected,
      { input: 3, cachedInput: 37, output: 1 },
      false,
      { input: 3, cachedInput: 37, output: 2, reasoning: 0 },
    ],
    ["count of the prompt, if the report has none", disconnected, { input: 0, output: 1 }, false, { input: 5, output: 2 }],
    ["delivered output only, if the server shuts down", shutDown, { input: 40, output: 60 }, true, { input: 40, output: 2 }],
    ["delivered output only, if the upstream fails", failed, { input: 40, output: 60 }, false, { input: 40, output: 2 }],
  ])("is charged for the %s", async (_what, ending, usage, isFinal, charged) => {
    expect((await chargedFor(ending, usage, isFinal))?.usage).toMatchObject(charged);
  });

  test("is charged at most its hold", async () => {
    const charge = await chargedFor(disconnected, { input: 1_000, output: 1_000 }, true);
    expect(charge?.usage).toMatchObject({ input: 100, output: 100 });
  });
});
