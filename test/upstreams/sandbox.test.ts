import { afterAll, describe, expect, test } from "vitest";
import { usageOf } from "../../src/domain/price.ts";
import type { Prompt } from "../../src/domain/prompt.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { SandboxUpstream } from "../../src/upstreams/sandbox/sandbox.ts";
import { Progress } from "../../src/upstreams/upstream.ts";
import { UpstreamFailure } from "../../src/upstreams/upstream-failure.ts";
import { promptOf } from "../support/samples.ts";

const counter = new TokenCounter();
const sandbox = new SandboxUpstream({
  settings: { kind: "sandbox", delayMs: 0 },
  countPrompt: counter.countPrompt.bind(counter),
});
afterAll(() => counter.close());

function prompt(content: string, values: Partial<Prompt> = {}): Prompt {
  return promptOf({ messages: [{ role: "user", content }], maxTokens: 1_000, ...values });
}

async function reply(asked: Prompt, signal = new AbortController().signal) {
  const pieces: string[] = [];
  for await (const event of sandbox.generate(asked, signal)) {
    if (event.kind === "done") return { pieces, text: pieces.join(""), ...event };
    if (event.kind === "text") pieces.push(event.text);
  }
  throw new Error("the reply has no end");
}

describe("the reply", () => {
  test("is equal for equal prompts and differs for others", async () => {
    const asked = Array.from({ length: 50 }, (_, i) => prompt(`question ${i}`));
    const texts = await Promise.all(asked.map(async (one) => (await reply(one)).text));
    expect(await Promise.all(asked.map(async (one) => (await reply(one)).text))).toEqual(texts);
    expect(new Set(texts).size).toBeGreaterThan(40);
    const system = prompt("", { messages: [{ role: "system", content: "question 1" }] });
    expect((await reply(system)).text).not.toBe(texts[1]);
  });

  test("is streamed in non-empty pieces and stops without a limit", async () => {
    const { pieces, text, finishReason } = await reply(prompt("hello"));
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces).not.toContain("");
    expect(text).toMatch(/^This is a reply of the sandbox\..*\.$/);
    expect(finishReason).toBe("stop");
  });

  test("is one piece per kind if it is not streamed and does not wait, even when it fails", async () => {
    const asked = prompt("[[reasoning=20 tokens=500]] x");
    const streamed = await reply(asked);
    const whole = await reply({ ...asked, streamed: false });
    expect(whole).toEqual({ ...streamed, pieces: whole.pieces });
    // The joined pieces are passed on before each turn of the event loop.
    expect(whole.pieces.length).toBeLessThan(5);
    expect(streamed.pieces.length).toBeGreaterThan(100);
    const texts: string[] = [];
    const failing = async () => {
      const events = sandbox.generate(prompt("[[fail_after=6]]", { streamed: false }), new AbortController().signal);
      for await (const event of events) if (event.kind === "text") texts.push(event.text);
    };
    await expect(failing()).rejects.toBeInstanceOf(UpstreamFailure);
    expect(texts).toHaveLength(1);
    expect(await counter.countTexts(texts)).toBe(6);
  });

  test("reports the tokens that the tokenizer counts", async () => {
    // Long enough to contain every sentence.
    const asked = prompt("[[tokens=1000]] x");
    const { text, usage } = await reply(asked);
    expect(usage).toEqual(usageOf({ inputTokens: await counter.countPrompt(asked), outputTokens: 1_000 }));
    expect(await counter.countTexts([text])).toBe(1_000);
  });
});

describe("max_tokens", () => {
  test("truncates the reply at exactly that token", async () => {
    const { text, usage } = await reply(prompt("hello"));
    const all = usage?.output ?? 0;
    for (let maxTokens = 1; maxTokens <= all + 1; maxTokens++) {
      const cut = await reply(prompt("hello", { maxTokens }));
      expect(cut.finishReason).toBe(maxTokens < all ? "length" : "stop");
      expect(cut.usage?.output).toBe(Math.min(maxTokens, all));
      expect(await counter.countTexts([cut.text])).toBe(Math.min(maxTokens, all));
      expect(text.startsWith(cut.text)).toBe(true);
    }
  });

  test("a reply has up to 32,000 tokens", async () => {
    const { usage } = await reply(prompt("[[tokens=32000]]", { maxTokens: 32_000 }));
    expect(usage?.output).toBe(32_000);
  });
});

describe("stop", () => {
  test("ends the reply before a stop text, even if that spans pieces", async () => {
    const whole = await reply(prompt("hello"));
    for (let at = 0; at + 7 <= whole.text.length; at++) {
      const stop = whole.text.slice(at, at + 7);
      const cut = await reply(prompt("hello", { stop: ["not in the reply", stop] }));
      expect(cut.text).toBe(whole.text.slice(0, whole.text.indexOf(stop)));
      expect(cut.finishReason).toBe("stop");
      expect(cut.usage?.output).toBeLessThanOrEqual(whole.usage?.output ?? 0);
    }
  });

  test("at a word boundary reports the tokens of the reply", async () => {
    const cut = await reply(prompt("hello", { stop: [" sandbox"] }));
    expect(cut.usage?.output).toBe(await counter.countTexts([cut.text]));
    expect((await reply(prompt("hello", { stop: ["This"] }))).usage?.output).toBe(0);
  });

  test("is the text that is complete first, and the longer of two that end together", async () => {
    expect(await reply(prompt("hello", { stop: ["is is a", "", "s i"] }))).toMatchObject({ text: "Thi", stopSequence: "s i" });
    expect(await reply(prompt("hello", { stop: [" is", "is is"] }))).toMatchObject({ text: "Th", stopSequence: "is is" });
  });

  test("a stop text that max_tokens truncates does not match", async () => {
    const cut = await reply(prompt("hello", { stop: ["This is a"], maxTokens: 2 }));
    expect(cut).toMatchObject({ text: "This is", finishReason: "length", usage: { output: 2 } });
  });
});

describe("directives", () => {
  test("tokens sets the length of the reply", async () => {
    expect(await reply(prompt("[[tokens=7]] hello"))).toMatchObject({ finishReason: "stop", usage: { output: 7 } });
    const cut = await reply(prompt("[[tokens=200]]", { maxTokens: 150 }));
    expect(cut).toMatchObject({ finishReason: "length", usage: { output: 150 } });
  });

  test("fail_after fails after that many tokens, without a retry or an effect on the breaker", async () => {
    const texts: string[] = [];
    const failing = async () => {
      for await (const event of sandbox.generate(prompt("[[fail_after=6]]"), AbortSignal.timeout(60_000)))
        if (event.kind === "text") texts.push(event.text);
    };
    await expect(failing()).rejects.toSatisfy(
      (error) => error instanceof UpstreamFailure && !error.isUnhealthy && !error.mayRetry,
    );
    expect(await counter.countTexts([texts.join("")])).toBe(6);
    await expect(reply(prompt("[[fail_after=0]]"))).rejects.toBeInstanceOf(UpstreamFailure);
  });

  // biome-ignore format: a few lines
  test.each([
    "[[tokens=32001]]", "[[tokens=-1]]", "[[tokens=1 tokens=1]]", "[[constructor=1]]", "[[fail=1]]", " [[tokens=1]]", "[[tokens=1",
    `[[${"tokens=1 ".repeat(50_000)}]]`,
  ])("%.30s is part of the prompt", async (content) => {
    expect((await reply(prompt(content))).usage?.output).toBeGreaterThan(8);
  });
});

describe("an aborted signal", () => {
  test("ends a wait at once with its reason", async () => {
    const controller = new AbortController();
    const reason = new Error("caller disconnected");
    const ended = reply(prompt("[[delay_ms=10000]]"), controller.signal);
    setImmediate(() => controller.abort(reason));
    await expect(ended).rejects.toBe(reason);
    // The test timeout is shorter than the wait.
  }, 5_000);

  test("stops the timer of its pause if no other reply shares it", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    const controller = new AbortController();
    const events = sandbox.generate(prompt("[[delay_ms=10000]]"), controller.signal, new Progress());
    const first = events.next();
    while (timers() === before) await new Promise(setImmediate);
    controller.abort(new Error("caller disconnected"));
    await expect(first).rejects.toBe(controller.signal.reason);
    expect(timers()).toBe(before);
  });

  test("does not end the pauses of other replies that share its timer", async () => {
    const controller = new AbortController();
    const reason = new Error("caller disconnected");
    const asked = prompt("[[tokens=16 delay_ms=20]]");
    const others = Promise.all(Array.from({ length: 5 }, () => reply(asked)));
    const ended = reply(asked, controller.signal);
    setTimeout(() => controller.abort(reason), 30);
    await expect(ended).rejects.toBe(reason);
    for (const { pieces, finishReason } of await others) {
      expect(pieces).toHaveLength(4);
      expect(finishReason).toBe("stop");
    }
  });

  test("ends a reply that has no delay", async () => {
    const controller = new AbortController();
    const reason = new Error("caller disconnected");
    const ended = reply(prompt("[[tokens=32000]]", { maxTokens: 32_000 }), controller.signal);
    setTimeout(() => controller.abort(reason), 1);
    await expect(ended).rejects.toBe(reason);
  });

  test("does not make a started call free: the sandbox starts at once", async () => {
    const controller = new AbortController();
    const progress = new Progress();
    const events = sandbox.generate(prompt("[[delay_ms=10000]]"), controller.signal, progress);
    expect(progress.wasSent).toBe(false);
    const first = events.next();
    expect(progress.wasSent).toBe(true);
    controller.abort(new Error("caller disconnected"));
    await expect(first).rejects.toBe(controller.signal.reason);
  });

  test("prevents the start of a reply", async () => {
    const reason = new Error("caller disconnected");
    await expect(reply(prompt("hello"), AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
