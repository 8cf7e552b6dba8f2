import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { formatMicros, parseAmount, setCurrency } from "../../src/domain/money.ts";

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

describe("currencies", () => {
  afterEach(() => setCurrency("USD"));

  test.each([
    ["EUR", 12_500_000n, "€12.50"],
    ["GBP", -500_000n, "-£0.50"],
    ["JPY", 1_250_000_000n, "¥1250"],
    ["JPY", 500_000n, "¥0.5"],
    ["JPY", -1n, "-¥0.000001"],
    ["JPY", 10_000_000n, "¥10"],
    ["CHF", 12_500_000n, "CHF 12.50"],
    ["KWD", 1_250_000n, "KWD 1.250"],
    ["KWD", -1_250_100n, "-KWD 1.2501"],
    ["KWD", 0n, "KWD 0.000"],
  ])("in %s, %s micros are formatted as %s", (code, micros, text) => {
    setCurrency(code);
    expect(formatMicros(micros)).toBe(text);
  });

  test("no currency loses a part of an amount", () => {
    fc.assert(
      fc.property(fc.constantFrom("USD", "JPY", "KWD", "CHF"), amounts, (code, micros) => {
        setCurrency(code);
        expect(parseAmount(formatMicros(micros).replace(/[^-\d.]/g, ""))).toBe(micros);
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
        expect(parseAmount(`${negative ? "-" : ""}${units}`)).toBe((negative ? -1n : 1n) * BigInt(units) * 1_000_000n);
      }),
    );
  });

  const words = "- . 5. .5 1.0000001 1e3 0x1 +1 1,5 $1 --1 1.-5 ٣ NaN".split(" ");
  test.each(["", ...words, " 1", "1 ", "1\n", "1".repeat(14)])("%j is rejected", (text) => {
    expect(parseAmount(text)).toBeUndefined();
  });
});
