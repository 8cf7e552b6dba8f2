import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { inputTokenBound, type PromptInput, textsOfPrompt } from "../../src/domain/prompt.ts";
import { countTexts } from "../../src/tokens/count-tokens.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { runs } from "../support/runs.ts";

const counter = new TokenCounter();
afterAll(() => counter.close());

/** The count of a text that is not split. */
const whole = (text: string) => countTexts([text]);

const prompt = (...contents: string[]): PromptInput => ({
  messages: contents.map((content) => ({ role: "user", content })),
  options: {},
});

test("any text, also with lone surrogates, has no more tokens than the bound", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: "binary", maxLength: 600 }), { maxLength: 5 }), async (texts) => {
      const messages = prompt(...texts, "\ud83d", "\ude00x");
      expect(await counter.countPrompt(messages)).toBeLessThanOrEqual(await inputTokenBound(messages));
    }),
    { numRuns: runs(15) },
  );
});

test("each message adds the same number of tokens to its content", async () => {
  const [one, two] = [await counter.countPrompt(prompt("a")), await counter.countPrompt(prompt("a", "a"))];
  expect(two).toBe(2 * one);
  expect(one).toBeGreaterThan(1);
  expect(await counter.countPrompt(prompt(""))).toBe(await inputTokenBound(prompt("")));
});

describe("an estimate", () => {
  test("of short texts is their count", async () => {
    const texts = ["Hello", "", "world"];
    expect(await counter.estimateTexts(texts)).toBe(await counter.countTexts(texts));
    expect(await counter.estimateTexts([])).toBe(0);
    expect(await counter.estimatePrompt(prompt("Hello"))).toBe(await counter.countPrompt(prompt("Hello")));
  });

  test("of a long text is near its count", async () => {
    const text = "The quick brown fox jumps over the lazy dog. ".repeat(1_000);
    const ratio = (await counter.estimateTexts([text, text])) / (await counter.countTexts([text, text]));
    expect(ratio).toBeGreaterThan(0.9);
    expect(ratio).toBeLessThan(1.15);
  });
});

test.each([
  { prompts: "large", words: 20_000 },
  { prompts: "other", words: 1_000 },
])("the thread of $prompts prompts ends when it is idle, and starts again", async ({ words }) => {
  const text = "Hello ".repeat(words);
  const tokens = await counter.countTexts([text]);
  const ends: Promise<unknown>[] = [];
  const watch = (message: unknown) => ends.push(once((message as { worker: Worker }).worker, "exit"));
  subscribe("worker_threads", watch);
  const idle = new TokenCounter({ idleMs: 1 });
  for (const started of [1, 2]) {
    expect(await idle.countTexts([text])).toBe(tokens);
    expect(ends).toHaveLength(started);
    await ends.at(-1);
  }
  unsubscribe("worker_threads", watch);
  await idle.close();
});

describe("a prompt counted in a thread", () => {
  const HOSTILE = {
    "one letter": "a".repeat(100_000),
    "halves of surrogate pairs": "\ud83d".repeat(100_000),
    "random text": Array.from({ length: 100_000 }, (_, i) => String.fromCharCode((i * 7919) % 55_000)).join(""),
  };

  test.each(Object.entries(HOSTILE))("100,000 characters do not block the event loop: %s", async (_, text) => {
    // Loads the tokenizer of this thread.
    await counter.countTexts(["short"]);
    const order: string[] = [];
    const count = counter.countTexts([text]).finally(() => order.push("long"));
    // This one is counted in this thread, so its result is there before any message of another thread.
    await counter.countTexts(["short"]).finally(() => order.push("short"));
    const tokens = await count;
    expect(order).toEqual(["short", "long"]);
    expect(tokens).toBeGreaterThan(0);
    expect(tokens).toBeLessThanOrEqual(Buffer.byteLength(text));
  });

  test("each of several concurrent prompts gets the right count", async () => {
    const texts = Array.from({ length: 8 }, (_, i) => "many words ".repeat(400 * (i + 1)));
    expect(await Promise.all(texts.map((text) => counter.countTexts([text])))).toEqual(texts.map(whole));
  });

  test("has the sum of the counts of its messages", async () => {
    const messages = prompt(...Array.from({ length: 200 }, (_, i) => `message ${i} `.repeat(100)));
    const sum = textsOfPrompt(messages).reduce((total, text) => total + whole(text) + 4, 0);
    expect(await counter.countPrompt(messages)).toBe(sum);
  });

  test("does not wait for a large one if it is small", async () => {
    const large = Promise.resolve(counter.countPrompt(prompt(HOSTILE["random text"])));
    const order: string[] = [];
    await Promise.all([
      large.then(() => order.push("large")),
      counter.countTexts(["words ".repeat(1_000)]).then(() => order.push("small")),
    ]);
    expect(order).toEqual(["small", "large"]);
  });
});

describe("a counter", () => {
  const LONG = "long text ".repeat(1_000);
  const LARGE = "words ".repeat(15_000);

  test("stops counting when the signal aborts, frees the capacity, and counts other prompts", async () => {
    const own = new TokenCounter({ maxPrompts: 3, maxCharacters: 1_000_000 });
    const count = (signal?: AbortSignal) => own.countTexts([LONG], { accountId: "one", ...(signal && { signal }) });
    const [running, waiting] = [new AbortController(), new AbortController()];
    const counts = [running, waiting].map(({ signal }) => count(signal));
    const rejected = expect(count()).rejects.toMatchObject({ reason: "overloaded" });
    const reasons = [new Error("first"), new Error("second")];
    running.abort(reasons[0]);
    waiting.abort(reasons[1]);
    const ended = await Promise.allSettled(counts);
    await rejected;
    expect(ended.map((one) => (one.status === "rejected" ? one.reason : one))).toEqual(reasons);
    await expect(own.countTexts(["short"], running)).rejects.toBe(reasons[0]);
    expect(await Promise.all([count(), count()])).toEqual([whole(LONG), whole(LONG)]);
    await own.close();
  });

  test("counts a small prompt when large ones use all of their capacity", async () => {
    const own = new TokenCounter({ maxPrompts: 8, maxCharacters: 800_000 });
    const large = Array.from({ length: 8 }, () => own.countTexts([LARGE]));
    const small = own.countTexts([LONG]);
    await expect(own.countTexts([LARGE])).rejects.toMatchObject({ reason: "overloaded" });
    expect(await small).toBe(whole(LONG));
    expect(new Set(await Promise.all(large))).toEqual(new Set([whole(LARGE)]));
    await own.close();
  });

  test.each([
    { what: "prompts", limits: { maxPrompts: 2, maxCharacters: 1_000_000 } },
    { what: "characters", limits: { maxPrompts: 100, maxCharacters: 2 * LONG.length } },
  ])("rejects more $what than the limit, and accepts them again below it", async ({ limits }) => {
    const own = new TokenCounter(limits);
    const counts = [own.countTexts([LONG]), own.countTexts([LONG])];
    await expect(own.countTexts([LONG])).rejects.toMatchObject({ reason: "overloaded" });
    expect(await own.countTexts(["short"])).toBe(1);
    expect(await Promise.all(counts)).toEqual([whole(LONG), whole(LONG)]);
    expect(await own.countTexts([LONG])).toBe(whole(LONG));
    await own.close();
  });

  test("rejects only the prompt that cannot be counted", async () => {
    const invalid = { length: 10_000, slice: () => 7 } as unknown as string;
    const count = (text: string) => counter.countTexts([text], { accountId: "one" });
    expect(await Promise.allSettled([count(invalid), count(LONG)])).toMatchObject([
      { status: "rejected", reason: { reason: "unavailable" } },
      { status: "fulfilled", value: whole(LONG) },
    ]);
  });

  test("rejects waiting and new prompts when it is closed", async () => {
    const own = new TokenCounter();
    const counts = [1, 2, 3].map(() => own.countTexts([LONG], { accountId: "one" }));
    const closed = own.close();
    for (const count of counts) await expect(count).rejects.toMatchObject({ reason: "unavailable" });
    await closed;
    await expect(own.countTexts([LONG])).rejects.toMatchObject({ reason: "unavailable" });
  });

  test("stops counting a prompt soon after the given maximum of tokens", async () => {
    const all = whole(LARGE);
    const counted = await counter.countTexts([LARGE], { maxTokens: Math.floor(all / 4) });
    expect(counted).toBeGreaterThan(all / 4);
    expect(counted).toBeLessThan(all / 2);
    expect(await counter.countTexts([LARGE], { maxTokens: all })).toBe(all);
  });

  test("reserves capacity for other accounts, and counts their prompts before the next one of the first", async () => {
    const own = new TokenCounter({ maxPrompts: 16, maxCharacters: 100_000_000 });
    const order: string[] = [];
    const count = (accountId: string) => own.countTexts([LONG], { accountId }).then(() => order.push(accountId));
    const greedy = Array.from({ length: 14 }, () => count("greedy"));
    await expect(count("greedy")).rejects.toMatchObject({ reason: "overloaded" });
    await Promise.all([...greedy, count("modest")]);
    expect(order.indexOf("modest")).toBeLessThanOrEqual(2);
    await own.close();
  });

  test("counts a prompt of another account between the tasks of the largest ones", async () => {
    const own = new TokenCounter();
    const order: string[] = [];
    const count = (accountId: string, text: string) => own.countTexts([text], { accountId }).then(() => order.push(accountId));
    const hostile = Array.from({ length: 20 }, () => count("hostile", "漢字仮名交文".repeat(66_000)));
    await count("modest", LARGE);
    expect(order).toEqual(["modest"]);
    await Promise.all([own.close(), Promise.allSettled(hostile)]);
  });
});
