import fc from "fast-check";
import { expect, test } from "vitest";
import { affordableOutput, clampUsage, costOf } from "../../src/domain/price.ts";

const price = fc.bigInt({ min: 0n, max: 1_000_000_000_000n });
const prices = fc.record({ inputMicrosPerMillionTokens: price, outputMicrosPerMillionTokens: price });
const tokens = fc.nat(100_000_000);

test("the balance covers exactly the computed output, and not one token more", () => {
  fc.assert(
    fc.property(
      prices,
      tokens,
      tokens,
      fc.bigInt({ min: 0n, max: 10n ** 15n }),
      (model, input, wanted, micros) => {
        const costs = (outputTokens: number) => costOf(model, { inputTokens: input, outputTokens });
        const usage = { inputTokens: input, outputTokens: wanted };
        const affordable = affordableOutput(model, usage, micros);
        expect(affordable).toBeLessThanOrEqual(wanted);
        if (affordable >= 0) expect(costs(affordable)).toBeLessThanOrEqual(micros);
        if (affordable < wanted) expect(costs(affordable + 1)).toBeGreaterThan(micros);
      },
    ),
  );
});

test("for any reported usage, the charge is at most the hold", () => {
  const usage = fc.record({ inputTokens: fc.maxSafeNat(), outputTokens: fc.maxSafeNat() });
  const held = fc.record({ inputTokens: tokens, outputTokens: tokens });
  fc.assert(
    fc.property(prices, usage, held, (model, reported, most) => {
      const charged = clampUsage(reported, most);
      expect(costOf(model, charged)).toBeLessThanOrEqual(costOf(model, most));
      for (const kind of ["inputTokens", "outputTokens"] as const) {
        if (reported[kind] <= most[kind]) expect(charged[kind]).toBe(reported[kind]);
      }
    }),
  );
});
