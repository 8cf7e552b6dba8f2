import { type DescMessage, fromJson, type JsonValue, type Message, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { JsonScanner } from "../../src/codec/json/json-scanner.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { writerOf } from "../../src/codec/json/writer.ts";
import { RequestProblem } from "../../src/codec/problem.ts";
import { finish } from "../../src/codec/steps.ts";
import { everything } from "./messages.ts";

const readers = new Readers("refuse");

function read(desc: DescMessage, text: string, unknown = readers): Message {
  const scanner = new JsonScanner(Buffer.from(text));
  const message = finish(unknown.of(desc)(scanner, ""));
  scanner.end();
  return message;
}

/** Compares bytes, which distinguish NaN and negative zero. */
function bytes(desc: DescMessage, message: Message): string {
  return Buffer.from(toBinary(desc, message)).toString("hex");
}

const { message } = everything;
const plain = (text: string) => read(message("Plain"), text) as unknown as Record<string, unknown>;

test.each([
  ["int64", "9223372036854775807", 9_223_372_036_854_775_807n],
  ["int64", '"-9223372036854775808"', -9_223_372_036_854_775_808n],
  ["int64", "9007199254740993", 9_007_199_254_740_993n],
  ["int64", "1e3", 1_000n],
  ["int64", "-0", 0n],
  ["uint64", "18446744073709551615", 18_446_744_073_709_551_615n],
  ["int32", "-2147483648", -2_147_483_648],
  ["int32", "5.0", 5],
  ["double", '"-Infinity"', Number.NEGATIVE_INFINITY],
  ["double", '"1.5e-7"', 1.5e-7],
  ["double", "-0", -0],
  ["float", "3.4028234663852886e38", 3.4028234663852886e38],
  ["bytes", '"-_-_"', new Uint8Array([251, 255, 191])],
  ["bytes", '"+/+/"', new Uint8Array([251, 255, 191])],
  ["bytes", '"YQ"', new Uint8Array([97])],
  ["bytes", '"YQ=="', new Uint8Array([97])],
  ["color", '"COLOR_BLUE"', 2],
  ["color", "2", 2],
  ["color", "77", 77],
  ["int64value", "null", undefined],
  ["int64value", '"5"', 5n],
  ["boolvalue", "false", false],
])("a field of type %s takes %s", (type, text, value) => {
  expect(plain(`{"plain_${type}":${text}}`)[`plain${type.charAt(0).toUpperCase()}${type.slice(1)}`]).toEqual(value);
});

test.each([
  ["int64", "9223372036854775808"],
  ["int64", "-9223372036854775809"],
  ["int64", "0.5"],
  ["int64", '""'],
  ["int64", '" 1"'],
  ["int64", '"1n"'],
  ["int64", '"0x10"'],
  ["int64", "[1]"],
  ["uint64", "18446744073709551616"],
  ["uint64", "-1"],
  ["uint32", "4294967296"],
  ["int32", "2147483648"],
  ["int32", "true"],
  ["double", "1e400"],
  ["double", '"nan"'],
  ["double", '"1."x'.slice(0, -1).replace(".", "..")],
  ["double", "{}"],
  ["float", "3.5e38"],
  ["bool", '"true"'],
  ["bool", "1"],
  ["string", "1"],
  ["bytes", '"a"'],
  ["bytes", '"a+_="'],
  ["bytes", '"YQ==="'],
  ["color", '"COLOR_GREEN"'],
  ["color", '"red"'],
  ["color", "1.5"],
  ["color", "4294967297"],
  ["color", "true"],
  ["timestamp", '"yesterday"'],
  ["duration", '"1m"'],
  ["duration", "1"],
  ["fieldmask", '"a_b"'],
  ["struct", "[]"],
  ["struct", '{"a":1,"a":2}'],
  ["struct", '{"a":"\\ud800"}'],
  ["value", '["\\udc00"]'],
  ["value", '{"a":"\\q"}'],
  ["value", "1e400"],
  ["struct", '{"a":[1e400]}'],
])("a field of type %s does not take %s", (type, text) => {
  expect(() => plain(`{"plain_${type}":${text}}`)).toThrow(RequestProblem);
});

test.each([
  ['{"keyed_by_int32":{"x":"y"}}', 'keyed_by_int32["x"]'],
  ['{"keyed_by_bool":{"1":"y"}}', 'keyed_by_bool["1"]'],
  ['{"keyed_by_string":{"x":5}}', 'keyed_by_string["x"]'],
  ['{"map_of_tree":{"x":{"left":{"children":[{},{"leaf":1}]}}}}', 'map_of_tree["x"].left.children[1].leaf'],
  ['{"map_of_tree":{"x":null}}', 'map_of_tree["x"]'],
])("%s is wrong at %s", (text, field) => {
  expect(() => read(message("Maps"), text)).toThrow(expect.objectContaining({ field }));
});

test("names of object prototypes are ordinary map keys", () => {
  const text = '{"map_of_int32":{"__proto__":1,"constructor":2,"toString":3}}';
  const { mapOfInt32 } = read(message("Maps"), text) as unknown as { mapOfInt32: object };
  expect(Object.entries(mapOfInt32)).toEqual([
    ["__proto__", 1],
    ["constructor", 2],
    ["toString", 3],
  ]);
  expect(writerOf(message("Maps"))(read(message("Maps"), text))).toContain(text.slice(1, -1));
  expect(({} as Record<string, unknown>).polluted).toBe(undefined);
});

test("names of object prototypes are ordinary Struct keys", () => {
  const text = '{"plain_struct":{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}}';
  expect(writerOf(message("Plain"))(plain(text) as unknown as Message)).toContain(text.slice(1, -1));
  expect(({} as Record<string, unknown>).polluted).toBe(undefined);
});

test("a map accepts each key once, in any notation", () => {
  expect(() => read(message("Maps"), '{"keyed_by_int32":{"1":"a","01":"b"}}')).toThrow(RequestProblem);
  expect(() => read(message("Maps"), '{"keyed_by_string":{"a":"a","\\u0061":"b"}}')).toThrow(RequestProblem);
});

test("a oneof accepts only one of its fields", () => {
  expect(read(message("Choice"), '{"one_bool":false}')).toMatchObject({ choice: { case: "oneBool", value: false } });
  expect(read(message("Choice"), '{"nothing":null}')).toMatchObject({ choice: { case: "nothing", value: 0 } });
  expect(read(message("Choice"), '{"one_bool":null}')).toMatchObject({ choice: { case: undefined } });
  expect(() => read(message("Choice"), '{"one_bool":true,"one_int32":1}')).toThrow(/must not be set together/);
});

test("a null member of a oneof does not conflict with another member before or after it", () => {
  for (const text of ['{"one_bool":null,"one_int32":1}', '{"one_int32":1,"one_bool":null,"one_tree":null}'])
    expect(read(message("Choice"), text)).toMatchObject({ choice: { case: "oneInt32", value: 1 } });
  expect(() => read(message("Choice"), '{"one_int32":1,"nothing":null}')).toThrow(/must not be set together/);
  expect(() => read(message("Choice"), '{"one_value":null,"one_int32":1}')).toThrow(/must not be set together/);
});

describe("an enum value with an unknown name", () => {
  const ignoring = new Readers("ignore");
  const texts = [
    ["Plain", '{"plain_color":"COLOR_GREEN","plain_bool":true}'],
    ["Optional", '{"maybe_color":"COLOR_GREEN"}'],
    ["Lists", '{"list_of_color":["COLOR_RED","COLOR_GREEN","COLOR_BLUE"]}'],
    ["Maps", '{"map_of_color":{"a":"COLOR_RED","b":"COLOR_GREEN"}}'],
    ["Choice", '{"one_color":"COLOR_GREEN"}'],
  ] as const;

  test.each(texts)("in %s counts as absent if unknown names are ignored, as in ProtoJSON", (name, text) => {
    const canonical = fromJson(message(name), JSON.parse(text) as JsonValue, { ignoreUnknownFields: true });
    expect(bytes(message(name), read(message(name), text, ignoring))).toBe(bytes(message(name), canonical));
  });

  test.each(texts)("in %s is rejected otherwise", (name, text) => {
    expect(() => read(message(name), text)).toThrow(/must be one of/);
  });

  test("that is not a string is always rejected", () => {
    for (const wrong of ["true", "1.5", "{}", '"99999999999999"'.replaceAll('"', "")])
      expect(() => read(message("Plain"), `{"plain_color":${wrong}}`, ignoring)).toThrow(RequestProblem);
  });
});

test("the values of ignored names must be valid JSON", () => {
  const ignoring = new Readers("ignore");
  const tree = (text: string) => read(message("Tree"), text, ignoring);
  expect(tree('{"name":"x","other":{"a":[1,"b",null,true,{}]}}')).toMatchObject({ name: "x" });
  for (const wrong of ["[1,]", '{"a"}', '"\\x"', '"\\ud800"', "01", "tru", "[", '{"a":1,"a":2}', "[".repeat(100_000)]) {
    expect(() => tree(`{"other":${wrong}}`), wrong.slice(0, 20)).toThrow(RequestProblem);
  }
});

test.each(["{", "[", '{"left":', '{"children":['])("a message nested without limit by %j is rejected", (piece) => {
  expect(() => read(message("Tree"), piece.repeat(100_000))).toThrow(RequestProblem);
});

test("64 levels are accepted, 65 are rejected", () => {
  const nested = (depth: number) => `${'{"left":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;
  expect(read(message("Tree"), nested(64))).toBeDefined();
  expect(() => read(message("Tree"), nested(65))).toThrow(/levels of objects and lists/);
});

test.each([
  ["digits", `"${"1".repeat(1_000_000)}x"`, "double"],
  ["digits", `"${"1".repeat(1_000_000)}x"`, "int64"],
  ["digits with an exponent", `"1e${"1".repeat(1_000_000)}x"`, "double"],
  ["digits as a number", "1".repeat(1_000_000), "int64"],
  ["backslashes", `"${"\\\\".repeat(500_000)}x`, "string"],
  ["equals signs", `"${"=".repeat(1_000_000)}"`, "bytes"],
  ["letters", `"${"a".repeat(1_000_001)}!"`, "bytes"],
  ["space", " ".repeat(1_000_000), "string"],
  ["letters", `"${"9".repeat(1_000_000)}"`, "timestamp"],
  ["letters", `"${"9".repeat(1_000_000)}"`, "duration"],
  ["letters", `"${"a.".repeat(500_000)}"`, "color"],
])("a million %s (%#) are refused in linear time", (_name, text, type) => {
  // Quadratic time would exceed the time limit of the test: 10^12 steps.
  expect(() => plain(`{"plain_${type}":${text}`)).toThrow(RequestProblem);
});
