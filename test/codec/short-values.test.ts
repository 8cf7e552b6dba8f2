import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonScanner } from "../../src/codec/json/json-scanner.ts";
import { readJsonValue } from "../../src/codec/json/json-value-reader.ts";
import { MAX_SHORT_UNITS, readShortValue } from "../../src/codec/json/short-values.ts";
import { finish } from "../../src/codec/steps.ts";
import { knownJsonText } from "../../src/domain/json.ts";
import { runs } from "../support/runs.ts";

const LEVELS = 8;
const LONG = `"${"x".repeat(MAX_SHORT_UNITS)}"`;

/** What the reader makes of a value: its JSON, or that it is refused. */
function outcome(text: string): string {
  const scanner = new JsonScanner(Buffer.from(text));
  try {
    const value = finish(readJsonValue(scanner, "f"));
    scanner.end();
    return JSON.stringify(value);
  } catch {
    return "refused";
  }
}

/** The same in parts: after so many lists that are too long, nothing is read at once. */
function outcomeInParts(text: string): string {
  const read = outcome(`${"[".repeat(LEVELS)}${text},${LONG}${"]".repeat(LEVELS)}`);
  return read === "refused" ? read : read.slice(LEVELS, -`,${LONG}${"]".repeat(LEVELS)}`.length);
}

const name = fc.constantFrom('"a"', '"b"', '"__proto__"', '"1"', '"\\u0061"', '"\\""', '"\\\\"', '"]"', "a");
const scalar = fc.oneof(
  fc.constantFrom("1", "-0", "1.50", "1e400", "01", "true", "nul", '"\\ud83d\\ude00"', '"\\ud83d"', '"\t"', '"{"'),
  fc.string({ unit: "binary", maxLength: 4 }).map((text) => JSON.stringify(text)),
);
const space = fc.constantFrom("", "", "", " ", "\n", "\u00a0");
const comma = fc.constantFrom(",", ",", ",", ",", ",", ",", "", ":");
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.tuple(fc.array(tie("value"), { maxLength: 3 }), comma, space).map(([items, by, at]) => `[${at}${items.join(by)}]`),
    fc
      .tuple(fc.array(fc.tuple(name, tie("value")), { maxLength: 3 }), comma, space)
      .map(([members, by, at]) => `{${at}${members.map(([key, member]) => `${key}${at}:${member}`).join(by)}}`),
  ),
}));

test("a value that is read at once has the same outcome as one that is read in parts", () => {
  fc.assert(
    fc.property(value, (text) => {
      expect(outcome(text)).toBe(outcomeInParts(text));
    }),
    { numRuns: runs(200) },
  );
});

const read = (text: string) => readShortValue(text, 0, 4, 10);

test("an object is read with the values of all levels counted, up to its end", () => {
  const json = '{"a":[1,{"b":[]}],"c":"]}\\"\\\\"}';
  expect(read(`${json},"rest"]`)).toEqual({ value: JSON.parse(json), units: json.length, values: 5 });
});

describe("left to the reader in parts is", () => {
  test.each([
    ["a duplicate name", '{"a":1,"b":{"c":1,"c":1}}'],
    ["a duplicate name in another notation", '{"a":1,"\\u0061":2}'],
    ["a name with an escape", '{"a":1,"\\n":2}'],
    ["a name that is too long", '{"elevenchars":1}'],
    ["too many levels", "[[[[[]]]]]"],
    ["a number that is not finite", "[1e400]"],
    ["a number of many digits", `[1.${"0".repeat(300)}]`],
    ["an unpaired surrogate", '["\\uD800"]'],
    ["a string that does not end", '["]'],
    ["invalid JSON", "[1,]"],
    ["a list that is too long", `[${LONG}]`],
    ["a list of too many values", `[${"1,".repeat(4_096)}1]`],
    ["a list that does not end", "[1"],
  ])("%s", (_, text) => {
    expect(read(text)).toBeUndefined();
  });
});

describe("the text of a large object", () => {
  const LARGE = "x".repeat(4_096);
  const textOf = (member: string) => {
    const { value: tool } = readShortValue(`{"type":"t","parameters":${member}}`, 0, 9, 10) ?? {};
    return knownJsonText((tool as { parameters?: object }).parameters);
  };

  test("is kept if it has the form that JSON.stringify() writes", () => {
    const text = JSON.stringify({ a: [1, -2.5, true, null, {}, [], [{}]], b: { c: LARGE }, d: "€" });
    expect(textOf(text)).toBe(text);
  });

  test.each([
    ["white space", `{ "a":"${LARGE}"}`],
    ["an escape", `{"a":"${LARGE}\\n"}`],
    ["a number in another notation", `{"a":"${LARGE}","b":1.0}`],
    ["names that JavaScript reorders", `{"a":"${LARGE}","1":{}}`],
    ["fewer characters", '{"a":"x"}'],
  ])("is not kept with %s", (_, text) => {
    expect(textOf(text)).toBeUndefined();
  });
});
