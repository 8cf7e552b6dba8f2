import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type GenerateRequest, GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { readJsonMessage } from "../../src/codec/decode.ts";
import { JsonScanner } from "../../src/codec/json/json-scanner.ts";
import { readJsonValue } from "../../src/codec/json/json-value-reader.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { finish } from "../../src/codec/steps.ts";
import { runs } from "../support/runs.ts";

const read = (text: string) => {
  const scanner = new JsonScanner(Buffer.from(text));
  const value = finish(readJsonValue(scanner, "f"));
  scanner.end();
  return value;
};

const BASE64 = Buffer.alloc(150_000, "any bytes?>").toString("base64");
const WIDE = "水é😀".repeat(1_000);
const long = (units: number, text = BASE64) => text.repeat(Math.ceil(units / text.length)).slice(0, units);

const heads = fc.constantFrom("", "data:image/png;base64,", "data:a/b;c=d;base64,", "data:,", "http://h/");
const tails = fc.constantFrom("", "=", "==", "A", "-", "ä", "😀", " ", "\n", '"', "\\", "\u0001");
/** Around the size that is decoded at once, the decoded windows, the checked slices, and the longest text outside ASCII. */
const sizes = fc
  .tuple(fc.constantFrom(65_536, 131_136, 262_272, 1_048_576, 1_310_000, 2_097_152), fc.integer({ min: -70, max: 70 }))
  .map(([size, more]) => size + more);
const strings = fc
  .tuple(heads, fc.constantFrom(BASE64, WIDE), sizes, tails, fc.boolean())
  .map(([head, text, units, tail, isInside]) => `${head}${long(units, text)}${tail}${isInside ? long(400) : ""}`.toWellFormed());

test("long strings are read with every character, one after the other", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(strings, fc.constantFrom("", "ä", "😀x")), { maxLength: 3 }), (texts) => {
      const value = texts.map(([text, other]) => ({ text, other, list: [text.slice(-70_000).toWellFormed()] }));
      expect(JSON.stringify(read(JSON.stringify(value))) === JSON.stringify(value)).toBe(true);
    }),
    { numRuns: runs(6) },
  );
});

const readRequest = new Readers("refuse").of(GenerateRequestSchema);
const imageOf = (json: string) => {
  const body = Buffer.from(`{"messages":[{"parts":[{"image":{"data":${json}}}]}],"model":"m"}`);
  const request = finish(readJsonMessage(readRequest, body)) as GenerateRequest;
  expect(request.model).toBe("m");
  return Buffer.from(request.messages[0]?.parts[0]?.image?.data ?? []);
};

test("bytes are read from base64 of any length, with and without escapes", () => {
  for (const length of [100, 60_000, 1_500_000]) {
    const bytes = Buffer.alloc(length, "any bytes?>");
    const json = JSON.stringify(bytes.toString("base64"));
    expect(imageOf(json).equals(bytes)).toBe(true);
    expect(imageOf(json.replaceAll("/", "\\/")).equals(bytes)).toBe(true);
  }
});

test.each([
  ["another character", `"${long(400_000)}*AAA"`, /must be base64/],
  ["a character outside ASCII", `"${long(400_000)}ä"`, /must be base64/],
  ["too many bytes", `"${long(28_000_000)}"`, /must be at most 20971520 bytes/],
])("bytes with %s are refused", (_, json, message) => {
  expect(() => imageOf(json)).toThrow(message);
});

describe("refused with the place is a string with", () => {
  const base64 = long(2_000_000);
  test.each([
    ["a control character outside ASCII", `"${long(200_000, WIDE)}\n"`, /control character/],
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

test.each([
  ["base64", BASE64],
  ["wide text", WIDE],
])("bytes after %s that are not UTF-8 are refused", (_, text) => {
  for (const between of ['","', ""]) {
    const start = Buffer.from(`["${long(300_000, text)}${between}`);
    const bytes = Buffer.concat([start, Buffer.from([0xff]), Buffer.from('"]')]);
    expect(() => finish(readJsonValue(new JsonScanner(bytes), "f"))).toThrow(/not valid UTF-8/);
  }
});

test("base64 that is longer than the limit is not read", () => {
  const scanner = new JsonScanner(Buffer.from(`"${long(2_000_000)}"`));
  expect(finish(scanner.string(100_000))).toBeUndefined();
  expect(finish(new JsonScanner(Buffer.from(`"${long(200_000)}"`)).string(100_000))).toHaveLength(200_000);
});
