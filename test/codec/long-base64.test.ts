import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonScanner } from "../../src/codec/json/json-scanner.ts";
import { readJsonValue } from "../../src/codec/json/json-value-reader.ts";
import { finish } from "../../src/codec/steps.ts";

const read = (text: string) => {
  const scanner = new JsonScanner(Buffer.from(text));
  const value = finish(readJsonValue(scanner, "f"));
  scanner.end();
  return value;
};

const BASE64 = Buffer.alloc(150_000, "any bytes?>").toString("base64");
const long = (units: number) => BASE64.repeat(Math.ceil(units / BASE64.length)).slice(0, units);

const heads = fc.constantFrom("", "data:image/png;base64,", "data:a/b;c=d;base64,", "data:,", "http://h/");
const tails = fc.constantFrom("", "=", "==", "A", "-", "ä", "😀", " ", "\n", '"', "\\", "\u0001");
/** Around the size that is decoded at once, and around the sizes of the decoded windows and of the checked slices. */
const sizes = fc
  .tuple(
    fc.constantFrom(65_536, 131_136, 262_272, 1_048_576, 1_310_000, 2_097_152),
    fc.integer({ min: -70, max: 70 }),
  )
  .map(([size, more]) => size + more);
const strings = fc
  .tuple(heads, sizes, tails, fc.boolean())
  .map(([head, units, tail, isInside]) =>
    isInside ? `${head}${long(units)}${tail}${long(400)}` : `${head}${long(units)}${tail}`,
  );

test("long strings are read with every character, one after the other", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(strings, fc.constantFrom("", "ä", "😀x")), { maxLength: 3 }), (texts) => {
      const value = texts.map(([text, other]) => ({ text, other, list: [text.slice(-70_000)] }));
      expect(JSON.stringify(read(JSON.stringify(value))) === JSON.stringify(value)).toBe(true);
    }),
    { numRuns: 10 },
  );
});

describe("refused with the place is base64 with", () => {
  const base64 = long(2_000_000);
  test.each([
    ["a control character", `"${base64}\n${base64}"`, /control character/],
    ["a control character in front", `"data:image/png;\nbase64,${base64}"`, /control character/],
    ["no end", `"${base64}`, /not terminated/],
    ["text after it", `"${base64}"x`, /text after the end, at character 2000002/],
    ["a wrong escape", `"${base64}\\x"`, /invalid escape/],
    ["an unpaired surrogate", `"${base64}\\ud800"`, /unpaired surrogate/],
    ["a second string", `["${base64}" "${base64}"]`, /"]" is missing, at character 2000004/],
  ])("%s", (_, text, message) => {
    expect(() => read(text)).toThrow(message);
  });
});

test("bytes after base64 that are not UTF-8 are refused", () => {
  const bytes = Buffer.concat([
    Buffer.from(`["${long(2_000_000)}","`),
    Buffer.from([0xff]),
    Buffer.from('"]'),
  ]);
  expect(() => finish(readJsonValue(new JsonScanner(bytes), "f"))).toThrow(/not valid UTF-8/);
});

test("base64 that is longer than the limit is not read", () => {
  const scanner = new JsonScanner(Buffer.from(`"${long(2_000_000)}"`));
  expect(finish(scanner.string(100_000))).toBeUndefined();
  expect(finish(new JsonScanner(Buffer.from(`"${long(200_000)}"`)).string(100_000))).toHaveLength(200_000);
});
