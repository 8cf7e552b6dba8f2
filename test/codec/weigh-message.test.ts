import { create, type Message } from "@bufbuild/protobuf";
import { BytesValueSchema, ListValueSchema, StringValueSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { weighMessage } from "../../src/codec/decode.ts";
import { valueOfJson } from "../../src/rules/untyped-values.ts";

const LARGE_BODY = 1 << 20;

/** The weight, and the number of steps in which it was found. */
function weigh(message: Message): { readonly bytes: number; readonly steps: number } {
  const work = weighMessage(message, LARGE_BODY);
  for (let steps = 1; ; steps++) {
    const { done, value } = work.next();
    if (done) return { bytes: value as number, steps };
  }
}

test("the JSON of an untyped field is weighed without creating messages from it", () => {
  // The library would refuse a function.
  const json = { text: "x".repeat(1_000), notJson: (() => 1) as never };
  const { bytes } = weigh(create(ListValueSchema, { values: [valueOfJson(json)] }));
  expect(bytes).toBeGreaterThan(2_000);
  expect(bytes).toBeLessThan(3_000);
});

test("many values are weighed in steps", () => {
  const values = Array.from({ length: 20_000 }, () => valueOfJson("a"));
  expect(weigh(create(ListValueSchema, { values })).steps).toBeGreaterThan(4);
});

test("a text that is not Latin-1 weighs two bytes per unit, and its UTF-8", () => {
  const [narrow, wide] = ["e", "€"].map((unit) => weigh(create(StringValueSchema, { value: unit.repeat(10_000) })));
  expect(narrow?.bytes).toBeGreaterThan(20_000);
  expect(narrow?.bytes).toBeLessThan(21_000);
  expect(wide?.bytes).toBeGreaterThan(50_000);
  expect(wide?.bytes).toBeLessThan(51_000);
});

test("bytes of a binary message weigh the body to which they refer, once", () => {
  const body = new Uint8Array(1_000_000);
  const one = weigh(create(BytesValueSchema, { value: body.subarray(0, 1) })).bytes;
  expect(one).toBeGreaterThan(1_000_000);
  const values = create(ListValueSchema, { values: [] });
  const both = Object.assign(values, { first: body.subarray(0, 1), second: body.subarray(1, 2) });
  expect(weigh(both).bytes).toBeLessThan(1_001_000);
});
