import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatMicros, parseAmount } from "../../src/domain/money.ts";

const amounts = fc.bigInt({ min: -(10n ** 19n) + 1n, max: 10n ** 19n - 1n });

describe("formatMicros", () => {
  test.each([
    [0n, "$0.00"],
    [1n, "$0.000001"],
    [9_999_986n, "$9.999986"],
    [10_000_000n, "$10.00"],
    [500_000n, "$0.50"],
    [-500_000n, "-$0.50"],
    [-1n, "-$0.000001"],
    [1_230_000n, "$1.23"],
    [1_234_000n, "$1.234"],
    [9_000_000_000_000_000n, "$9000000000.00"],
  ])("%s micros are formatted as %s", (micros, text) => {
    expect(formatMicros(micros)).toBe(text);
  });

  test("is exact, with 2 to 6 decimals and no unnecessary zeros", () => {
    fc.assert(
      fc.property(amounts, (micros) => {
        const text = formatMicros(micros);
        expect(text).toMatch(/^-?\$(0|[1-9]\d*)\.\d{2,6}$/);
        expect(text).not.toMatch(/\.\d{2,}0$/);
        expect(parseAmount(text.replace("$", ""))).toBe(micros);
      }),
    );
  });

  test("formats different amounts differently", () => {
    fc.assert(
      fc.property(amounts, amounts, (a, b) => {
        expect(formatMicros(a) === formatMicros(b)).toBe(a === b);
      }),
    );
  });
});

describe("parseAmount", () => {
  test("parses amounts with up to 6 decimals", () => {
    const whole = fc.integer({ min: 0, max: 9_999_999_999 });
    const decimals = fc.stringMatching(/^\d{1,6}$/);
    fc.assert(
      fc.property(fc.boolean(), whole, decimals, (negative, units, rest) => {
        const micros = BigInt(units) * 1_000_000n + BigInt(rest.padEnd(6, "0"));
        expect(parseAmount(`${negative ? "-" : ""}${units}.${rest}`)).toBe(negative ? -micros : micros);
        expect(parseAmount(`${negative ? "-" : ""}${units}`)).toBe(
          (negative ? -1n : 1n) * BigInt(units) * 1_000_000n,
        );
      }),
    );
  });

  test.each([
    "",
    "-",
    ".",
    "5.",
    ".5",
    "1.0000001",
    "1e3",
    "0x1",
    "+1",
    " 1",
    "1 ",
    "1,5",
    "$1",
    "--1",
    "1.-5",
    "٣",
    "1\n",
    "NaN",
    "1".repeat(14),
  ])("%j is rejected", (text) => {
    expect(parseAmount(text)).toBeUndefined();
  });
});
