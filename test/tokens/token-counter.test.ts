import fc from "fast-check";
import { countTokens } from "gpt-tokenizer/encoding/cl100k_base";
import { afterAll, describe, expect, test } from "vitest";
import { inputTokenBound } from "../../src/domain/input-token-bound.ts";
import type { PromptMessage } from "../../src/domain/prompt.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { longestTurnMs } from "../support/longest-turn.ts";

const counter = new TokenCounter();
afterAll(() => counter.close());

/** What the tokenizer says of the text in one go, special tokens being plain text. */
const whole = (text: string) => countTokens(text, { disallowedSpecial: new Set() });

const prompt = (...contents: string[]): PromptMessage[] =>
  contents.map((content) => ({ role: "user", content }));

/** Without byte order marks, which the package's own encoder does not find in its table. */
const words = fc
  .array(
    fc.string({ unit: "grapheme", maxLength: 40 }).filter((word) => !word.includes("\uFEFF")),
    {
      maxLength: 120,
    },
  )
  .map((parts) => parts.join(" "));

describe("count", () => {
  test.each([
    ["hello world", 2],
    ["", 0],
    ["unbreakable", 3],
    ["\ufeffhello", 2],
  ])("%j has %i tokens", async (text, tokens) => {
    expect(await counter.countText(text)).toBe(tokens);
  });

  test("pieces that end before a space have as many tokens as the whole", async () => {
    await fc.assert(
      fc.asyncProperty(words, async (text) => {
        expect(await counter.countText(text)).toBe(whole(text));
      }),
      { numRuns: 300 },
    );
    const prose = "It's 12,345 rows – “really”?\n\n  Yes.   Ende der Übertragung. ".repeat(300);
    expect(await counter.countText(prose)).toBe(whole(prose));
  });

  test("what looks like a special token is plain text", async () => {
    const text = "<|endoftext|> and <|im_start|>";
    expect(await counter.countText(text)).toBe(whole(text));
    expect(await counter.countText("<|endoftext|>")).toBeGreaterThan(1);
  });

  test("any text at all, lone surrogates included, has no more tokens than the bound says", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: "binary", maxLength: 600 }), { maxLength: 5 }),
        async (texts) => {
          const messages = prompt(...texts, "\ud83d", "\ude00x");
          expect(await counter.countPrompt(messages)).toBeLessThanOrEqual(inputTokenBound(messages));
        },
      ),
    );
  });

  test("each message costs a little more than its content", async () => {
    const [one, two] = [await counter.countPrompt(prompt("a")), await counter.countPrompt(prompt("a", "a"))];
    expect(two).toBe(2 * one);
    expect(one).toBeGreaterThan(1);
    expect(await counter.countPrompt(prompt(""))).toBe(inputTokenBound(prompt("")));
  });
});

describe("a prompt for the thread", () => {
  const HOSTILE = {
    "one letter": "a".repeat(400_000),
    emoji: "😀".repeat(200_000),
    "Chinese and Japanese": "漢字仮名交文".repeat(66_000),
    "halves of surrogate pairs": "\ud83d".repeat(400_000),
    spaces: " ".repeat(400_000),
    "random text": Array.from({ length: 400_000 }, (_, i) => String.fromCharCode((i * 7919) % 55_000)).join(
      "",
    ),
  };

  test.each(Object.entries(HOSTILE))("%s, 400,000 of it, holds nobody up", async (_, text) => {
    const count = counter.countText(text);
    expect(await longestTurnMs(count)).toBeLessThan(50);
    const tokens = await count;
    expect(tokens).toBeGreaterThan(0);
    expect(tokens).toBeLessThanOrEqual(Buffer.byteLength(text));
  });

  test("several at once are each told their own count", async () => {
    const texts = Array.from({ length: 8 }, (_, i) => "many words ".repeat(400 * (i + 1)));
    expect(await Promise.all(texts.map((text) => counter.countText(text)))).toEqual(texts.map(whole));
  });

  test("messages count one by one, as short ones do", async () => {
    const messages = prompt(...Array.from({ length: 200 }, (_, i) => `message ${i} `.repeat(100)));
    const sum = messages.reduce((total, { content }) => total + whole(content) + 4, 0);
    expect(await counter.countPrompt(messages)).toBe(sum);
  });

  test("a small one does not wait for a large one", async () => {
    const large = counter.countPrompt(prompt(...Array.from({ length: 3 }, () => HOSTILE.emoji)));
    const order: string[] = [];
    await Promise.all([
      large.then(() => order.push("large")),
      counter.countText("words ".repeat(1_000)).then(() => order.push("small")),
    ]);
    expect(order).toEqual(["small", "large"]);
  });
});

describe("a counter of its own", () => {
  const LONG = "long text ".repeat(1_000);

  test("ends a count when the signal aborts, whether it waits or runs, and counts on", async () => {
    const own = new TokenCounter();
    const [running, waiting] = [new AbortController(), new AbortController()];
    const counts = [running, waiting].map(({ signal }) => own.countText(LONG, { signal }));
    const reasons = [new Error("first"), new Error("second")];
    running.abort(reasons[0]);
    waiting.abort(reasons[1]);
    const ended = await Promise.allSettled(counts);
    expect(ended.map((one) => (one.status === "rejected" ? one.reason : one))).toEqual(reasons);
    expect(own.waiting).toBe(0);
    await expect(own.countText("short", running)).rejects.toBe(reasons[0]);
    expect(await own.countText(LONG)).toBe(whole(LONG));
    await own.close();
  });

  test("counts a small one after one turn of the large ones, however many wait and have taken all their room", async () => {
    const own = new TokenCounter({ jobsMax: 8, charactersMax: 1_600_000 });
    const order: string[] = [];
    const note = (name: string, count: Promise<number>) => count.then(() => order.push(name));
    const large = Array.from({ length: 8 }, () => own.countText("words ".repeat(30_000)));
    await expect(own.countText("words ".repeat(30_000))).rejects.toMatchObject({ reason: "overloaded" });
    await Promise.all([...large.map((count) => note("large", count)), note("small", own.countText(LONG))]);
    expect(order.indexOf("small")).toBeLessThanOrEqual(1);
    await own.close();
  });

  test("counts a large one between small ones", async () => {
    const own = new TokenCounter();
    const order: string[] = [];
    const note = (name: string, count: Promise<number>) => count.then(() => order.push(name));
    const small = Array.from({ length: 8 }, () => own.countText(LONG));
    const large = own.countText("words ".repeat(30_000));
    await Promise.all([...small.map((count) => note("small", count)), note("large", large)]);
    expect(order.indexOf("large")).toBeLessThanOrEqual(1);
    await own.close();
  });

  test.each([
    { what: "jobs", limits: { jobsMax: 2, charactersMax: 1_000_000 } },
    { what: "characters", limits: { jobsMax: 100, charactersMax: 2 * LONG.length } },
  ])("refuses more $what than it may have, and takes them when there is room", async ({ limits }) => {
    const own = new TokenCounter(limits);
    const counts = [own.countText(LONG), own.countText(LONG)];
    await expect(own.countText(LONG)).rejects.toMatchObject({ reason: "overloaded" });
    expect(await own.countText("short")).toBe(1);
    expect(await Promise.all(counts)).toEqual([whole(LONG), whole(LONG)]);
    expect(await own.countText(LONG)).toBe(whole(LONG));
    await own.close();
  });

  test("has a new thread when the old one dies of a text", async () => {
    const own = new TokenCounter();
    const poison = { length: 100_000 } as string;
    const outcomes = await Promise.allSettled([own.countText(poison), own.countText(LONG)]);
    expect(outcomes).toMatchObject([
      { status: "rejected", reason: { reason: expect.stringMatching(/unavailable|internal/) } },
      { status: "fulfilled", value: whole(LONG) },
    ]);
    await own.close();
  });

  test("tells those who wait when it is closed, and takes no more", async () => {
    const own = new TokenCounter();
    const count = own.countText(LONG);
    const closed = own.close();
    await expect(count).rejects.toMatchObject({ reason: "unavailable" });
    await closed;
    expect(own.threadId).toBeUndefined();
    await expect(own.countText(LONG)).rejects.toMatchObject({ reason: "unavailable" });
  });

  test("counts a prompt no further than beyond the most that is of interest", async () => {
    const own = new TokenCounter();
    const messages = Array.from({ length: 40 }, () => ({ role: "user" as const, content: LONG }));
    const one = whole(LONG);
    const counted = await own.countPrompt(messages, { most: one });
    expect(counted).toBeGreaterThan(one);
    expect(counted).toBeLessThan(40 * one);
    expect(await own.countPrompt(messages, { most: 40 * one })).toBeGreaterThanOrEqual(40 * one);
    const alone = await own.countPrompt(messages.slice(0, 1), { most: Math.floor(one / 4) });
    expect(alone).toBeGreaterThan(one / 4);
    expect(alone).toBeLessThan(one / 2);
    await own.close();
  });

  test("lets no payer fill a line, and serves another one before its next", async () => {
    const own = new TokenCounter({ jobsMax: 16, charactersMax: 100_000_000 });
    const order: string[] = [];
    const count = (payer: string) => own.countText(LONG, { payer }).then(() => order.push(payer));
    const greedy = Array.from({ length: 14 }, () => count("greedy"));
    await expect(count("greedy")).rejects.toMatchObject({ reason: "overloaded" });
    await Promise.all([...greedy, count("modest")]);
    expect(order.indexOf("modest")).toBeLessThanOrEqual(2);
    await own.close();
  });
});
