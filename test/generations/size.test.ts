import fc from "fast-check";
import { expect, test } from "vitest";
import { DomainError } from "../../src/domain/errors.ts";
import type { Model } from "../../src/domain/model.ts";
import { maxCostOf, tokenPrices } from "../../src/domain/price.ts";
import { textsOfPrompt } from "../../src/domain/prompt.ts";
import type { GenerationRequest } from "../../src/generations/generation-request.ts";
import { boundedSize, type Size, shrunkTo, type Tokens } from "../../src/generations/generation-size.ts";
import { modelOf, requestOf } from "../support/samples.ts";

const NEVER = new AbortController().signal;

/** Every character is a token, and every message has four more. */
const tokens: Pick<Tokens, "countPrompt"> = {
  countPrompt: async (prompt) => textsOfPrompt(prompt).reduce((sum, { length }) => sum + length + 4, 0),
};

const price = fc.bigInt({ min: 0n, max: 10_000_000n });
const model = fc
  .record({
    contextWindow: fc.integer({ min: 1, max: 3_000 }),
    max: fc.integer({ min: 1, max: 3_000 }),
    default: fc.integer({ min: 1, max: 3_000 }),
    base: fc.nat(200),
    perMessage: fc.nat(50),
    input: price,
    output: price,
  })
  .map(({ contextWindow, max, base, perMessage, input, output, ...values }): Model => {
    const maxOutputTokens = Math.min(max, contextWindow);
    return modelOf({
      contextWindow,
      maxOutputTokens,
      defaultOutputTokens: Math.min(values.default, maxOutputTokens),
      promptOverheadTokens: { base, perMessage },
      prices: tokenPrices(input, output),
    });
  });
const generationRequest = fc
  .record({
    messages: fc.array(
      fc.record({
        role: fc.constantFrom("system" as const, "user" as const),
        content: fc.string({ unit: "grapheme", maxLength: 400 }),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    maxTokens: fc.option(fc.integer({ min: 1, max: 32_000 }), { nil: undefined }),
  })
  .map(requestOf);
const micros = fc.bigInt({ min: 0n, max: 100_000n });

type Case = { readonly size: Size; readonly counted: number };

/** Undefined where the messages alone fill the window. */
async function sized(model: Model, request: GenerationRequest, balance: bigint) {
  const counted = await tokens.countPrompt(request);
  try {
    const payer = { accountId: "acct_1", balanceMicros: balance };
    return { size: await boundedSize(model, request, payer, tokens, NEVER), counted } satisfies Case;
  } catch (error) {
    if ((error as DomainError).reason === "max_cost_too_low") throw error;
    expect(error).toBeInstanceOf(DomainError);
    expect(counted).toBeGreaterThanOrEqual(model.contextWindow);
    return undefined;
  }
}

test("a hold covers the counted input, the chat template and max_tokens, within model and window", async () => {
  await fc.assert(
    fc.asyncProperty(model, generationRequest, micros, async (model, request, balance) => {
      const found = await sized(model, request, balance);
      if (!found) return;
      const { size, counted } = found;
      const { base, perMessage } = model.promptOverheadTokens;
      expect(size.inputTokens).toBeGreaterThanOrEqual(counted + base + perMessage * request.messages.length);
      expect(size.maxTokens).toBeGreaterThan(0);
      expect(size.maxTokens).toBeLessThanOrEqual(model.maxOutputTokens);
      expect(size.maxTokens).toBeLessThanOrEqual(request.maxTokens ?? model.defaultOutputTokens);
      expect(size.maxTokens + counted).toBeLessThanOrEqual(model.contextWindow);
      expect(size.amountMicros).toBe(
        maxCostOf(model.prices, { inputTokens: size.inputTokens, outputTokens: size.maxTokens, images: 0 }),
      );
    }),
  );
});

test("a maximum cost lowers the limit to exactly what it covers, and is refused below one token", async () => {
  await fc.assert(
    fc.asyncProperty(model, generationRequest, micros, async (model, request, maxCostMicros) => {
      const balance = 10n ** 12n;
      const free = await sized(model, request, balance);
      const limited = await sized(model, { ...request, maxCostMicros }, balance).catch((error: unknown) => error);
      if (!free) return;
      if (free.size.amountMicros <= maxCostMicros) {
        expect(limited).toEqual(free);
        return;
      }
      const { base, perMessage } = model.promptOverheadTokens;
      const inputTokens = free.counted + base + perMessage * request.messages.length;
      const room = model.contextWindow - free.counted;
      const wanted = Math.min(request.maxTokens ?? model.defaultOutputTokens, model.maxOutputTokens, room);
      const cost = (outputTokens: number) => maxCostOf(model.prices, { inputTokens, outputTokens, images: 0 });
      if (cost(1) > maxCostMicros) {
        expect(limited).toMatchObject({ reason: "max_cost_too_low" });
        return;
      }
      const { size } = limited as Case;
      expect(size).toMatchObject({ counted: true, inputTokens, amountMicros: cost(size.maxTokens) });
      expect(size.amountMicros).toBeLessThanOrEqual(maxCostMicros);
      if (size.maxTokens < wanted) expect(cost(size.maxTokens + 1)).toBeGreaterThan(maxCostMicros);
      else expect(size.maxTokens).toBe(wanted);
      expect(size.minTokens).toBeLessThanOrEqual(size.maxTokens);
    }),
  );
});

test("a limit is lowered to exactly what the funds cover, never below 64, and only if the caller named none", async () => {
  const tokenRoom = fc.option(fc.bigInt({ min: 0n, max: 6_000n }), { nil: undefined });
  await fc.assert(
    fc.asyncProperty(model, generationRequest, micros, tokenRoom, async (model, request, available, room) => {
      const found = await sized(model, request, 0n);
      if (!found) return;
      const { size } = found;
      const lowered = shrunkTo(model, size, { micros: available, tokens: room });
      const least = request.maxTokens === undefined ? Math.min(64, size.maxTokens) : size.maxTokens;
      expect(lowered.inputTokens).toBe(size.inputTokens);
      expect(lowered.maxTokens).toBeLessThanOrEqual(size.maxTokens);
      expect(lowered.maxTokens).toBeGreaterThanOrEqual(least);
      const fits = (maxTokens: number) => {
        const { inputTokens } = size;
        const cost = maxCostOf(model.prices, { inputTokens, outputTokens: maxTokens, images: 0 });
        return cost <= available && (room === undefined || BigInt(inputTokens + maxTokens) <= room);
      };
      if (lowered.maxTokens > least) expect(fits(lowered.maxTokens)).toBe(true);
      if (lowered.maxTokens < size.maxTokens) expect(fits(lowered.maxTokens + 1)).toBe(false);
    }),
  );
});
