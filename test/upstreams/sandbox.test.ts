import { afterAll, describe, expect, test } from "vitest";
import type { Prompt } from "../../src/domain/prompt.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { UpstreamFailure } from "../../src/upstreams/runner/failure.ts";
import { Progress } from "../../src/upstreams/runner/progress.ts";
import { SandboxUpstream } from "../../src/upstreams/sandbox/sandbox.ts";
import { longestTurnMs } from "../support/longest-turn.ts";

const counter = new TokenCounter();
const sandbox = new SandboxUpstream({
  settings: { kind: "sandbox", delayMs: 0 },
  countPrompt: (messages, signal) => counter.countPrompt(messages, { signal }),
});
afterAll(() => counter.close());

function prompt(content: string, options: Partial<Prompt> = {}): Prompt {
  return {
    messages: [{ role: "user", content }],
    maxTokens: 1_000,
    temperature: undefined,
    stop: [],
    ...options,
  };
}

async function reply(asked: Prompt, signal = new AbortController().signal) {
  const pieces: string[] = [];
  for await (const event of sandbox.generate(asked, signal)) {
    if (event.kind === "done") return { pieces, text: pieces.join(""), ...event };
    pieces.push(event.content);
  }
  throw new Error("the reply has no end");
}

describe("the reply", () => {
  test("is the same for the same prompt, and another one for another", async () => {
    const asked = Array.from({ length: 50 }, (_, i) => prompt(`question ${i}`));
    const texts = await Promise.all(asked.map(async (one) => (await reply(one)).text));
    expect(await Promise.all(asked.map(async (one) => (await reply(one)).text))).toEqual(texts);
    expect(new Set(texts).size).toBeGreaterThan(40);
    const system = prompt("", { messages: [{ role: "system", content: "question 1" }] });
    expect((await reply(system)).text).not.toBe(texts[1]);
  });

  test("comes in pieces, none of them empty, and ends by itself", async () => {
    const { pieces, text, finishReason } = await reply(prompt("hello"));
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces).not.toContain("");
    expect(text).toMatch(/^This is a reply of the sandbox\..*\.$/);
    expect(finishReason).toBe("stop");
  });

  test("costs the tokens that the tokenizer counts", async () => {
    // So long that every sentence comes.
    const asked = prompt("[[tokens=1000]] x");
    const { text, usage } = await reply(asked);
    expect(usage).toEqual({
      inputTokens: await counter.countPrompt(asked.messages),
      outputTokens: await counter.countText(text),
    });
    expect(usage?.outputTokens).toBe(1_000);
  });
});

describe("max_tokens", () => {
  test("cuts exactly there, and what is left is how the longer reply begins", async () => {
    const { text, usage } = await reply(prompt("hello"));
    const all = usage?.outputTokens ?? 0;
    for (let maxTokens = 1; maxTokens <= all + 1; maxTokens++) {
      const cut = await reply(prompt("hello", { maxTokens }));
      expect(cut.finishReason).toBe(maxTokens < all ? "length" : "stop");
      expect(cut.usage?.outputTokens).toBe(Math.min(maxTokens, all));
      expect(await counter.countText(cut.text)).toBe(Math.min(maxTokens, all));
      expect(text.startsWith(cut.text)).toBe(true);
    }
  });

  test("a reply of 32,000 tokens lets others have their turn", async () => {
    const count = reply(prompt("[[tokens=32000]]", { maxTokens: 32_000 }));
    expect(await longestTurnMs(count)).toBeLessThan(50);
    expect((await count).usage?.outputTokens).toBe(32_000);
  });
});

describe("stop", () => {
  test("ends the text before any of the texts, also one that spans pieces", async () => {
    const whole = await reply(prompt("hello"));
    for (let at = 0; at + 7 <= whole.text.length; at++) {
      const stop = whole.text.slice(at, at + 7);
      const cut = await reply(prompt("hello", { stop: ["never said", stop] }));
      expect(cut.text).toBe(whole.text.slice(0, whole.text.indexOf(stop)));
      expect(cut.finishReason).toBe("stop");
      expect(cut.usage?.outputTokens).toBeLessThanOrEqual(whole.usage?.outputTokens ?? 0);
    }
  });

  test("at the border of a word costs what was said", async () => {
    const cut = await reply(prompt("hello", { stop: [" sandbox"] }));
    expect(cut.usage?.outputTokens).toBe(await counter.countText(cut.text));
    expect((await reply(prompt("hello", { stop: ["This"] }))).usage?.outputTokens).toBe(0);
  });

  test("a text that max_tokens cuts in two does not count as said", async () => {
    const cut = await reply(prompt("hello", { stop: ["This is a"], maxTokens: 2 }));
    expect(cut).toMatchObject({ text: "This is", finishReason: "length", usage: { outputTokens: 2 } });
  });
});

describe("directives", () => {
  test("tokens says how long the reply is", async () => {
    expect(await reply(prompt("[[tokens=7]] hello"))).toMatchObject({
      finishReason: "stop",
      usage: { outputTokens: 7 },
    });
    expect(await reply(prompt("[[tokens=200]]", { maxTokens: 150 }))).toMatchObject({
      finishReason: "length",
      usage: { outputTokens: 150 },
    });
  });

  test("fail_after breaks off after so many tokens, in a way that harms no other call", async () => {
    const said: string[] = [];
    const failing = async () => {
      for await (const event of sandbox.generate(prompt("[[fail_after=6]]"), AbortSignal.timeout(60_000)))
        if (event.kind === "delta") said.push(event.content);
    };
    await expect(failing()).rejects.toSatisfy(
      (error) => error instanceof UpstreamFailure && !error.isSick && !error.mayRetry,
    );
    expect(await counter.countText(said.join(""))).toBe(6);
    await expect(reply(prompt("[[fail_after=0]]"))).rejects.toBeInstanceOf(UpstreamFailure);
  });

  test.each([
    "[[tokens=32001]]",
    "[[tokens=-1]]",
    "[[tokens=1 tokens=1]]",
    "[[constructor=1]]",
    "[[fail=1]]",
    " [[tokens=1]]",
    "[[tokens=1",
    `[[${"tokens=1 ".repeat(50_000)}]]`,
  ])("%.30s is text like any other", async (content) => {
    expect((await reply(prompt(content))).usage?.outputTokens).toBeGreaterThan(8);
  });
});

describe("a signal that aborts", () => {
  test("ends a wait at once with its reason", async () => {
    const controller = new AbortController();
    const reason = new Error("the caller left");
    const ended = reply(prompt("[[delay_ms=10000]]"), controller.signal);
    setImmediate(() => controller.abort(reason));
    await expect(ended).rejects.toBe(reason);
    // Less than the wait.
  }, 5_000);

  test("ends a reply without delay, too", async () => {
    const controller = new AbortController();
    const reason = new Error("the caller left");
    const ended = reply(prompt("[[tokens=32000]]", { maxTokens: 32_000 }), controller.signal);
    setTimeout(() => controller.abort(reason), 1);
    await expect(ended).rejects.toBe(reason);
  });

  test("comes too late for a free call: the sandbox is asked when it starts", async () => {
    const controller = new AbortController();
    const progress = new Progress();
    const events = sandbox.generate(prompt("[[delay_ms=10000]]"), controller.signal, progress);
    expect(progress.isAsked).toBe(false);
    const first = events.next();
    expect(progress.isAsked).toBe(true);
    controller.abort(new Error("the caller left"));
    await expect(first).rejects.toBe(controller.signal.reason);
  });

  test("that did so before lets nothing begin", async () => {
    const reason = new Error("the caller left");
    await expect(reply(prompt("hello"), AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});

test("a short reply costs less than 100 µs of CPU", async () => {
  const asked = prompt("What is a ledger?", { maxTokens: 20 });
  const rounds = 5_000;
  for (let i = 0; i < rounds; i++) await reply(asked);
  const before = process.cpuUsage();
  for (let i = 0; i < rounds; i++) await reply(asked);
  const { user, system } = process.cpuUsage(before);
  // 46 µs were seen, on any machine it is far from a millisecond.
  expect((user + system) / rounds).toBeLessThan(1_000);
});
