import { expect, test } from "vitest";
import {
  choiceAt,
  listAt,
  memberOf,
  objectAt,
  optionalBooleanAt,
  optionalTextAt,
  textAt,
} from "../../src/rules/untyped-members.ts";

test("inherited members and null count as missing", () => {
  expect(memberOf({ a: null }, "a")).toBeUndefined();
  expect(memberOf({}, "constructor")).toBeUndefined();
  expect(memberOf({ a: 0 }, "a")).toBe(0);
});

test("a value of the expected type is returned", () => {
  expect(objectAt({ a: 1 }, "f")).toEqual({ a: 1 });
  expect(listAt([1, 2], "f", 2)).toEqual([1, 2]);
  expect(textAt("", "f")).toBe("");
  expect(optionalTextAt(null, "f")).toBeUndefined();
  expect(optionalBooleanAt(false, "f")).toBe(false);
  expect(choiceAt("b", "f", ["a", "b"])).toBe("b");
});

const refused: [name: string, read: () => unknown, description: string][] = [
  ["a list in place of an object", () => objectAt([], "f"), "must be an object"],
  ["null in place of an object", () => objectAt(null, "f"), "must be an object"],
  ["an object in place of a list", () => listAt({}, "f", 1), "must be a list"],
  ["a list that is too long", () => listAt([1, 2], "f", 1), "must have at most 1 items"],
  ["a number in place of a string", () => textAt(1, "f"), "must be a string"],
  ["a string in place of a boolean", () => optionalBooleanAt("true", "f"), "must be true or false"],
  ["another text", () => choiceAt("c", "f", ["a", "b"]), 'must be "a" or "b"'],
];

test.each(refused)("%s is refused with the name of the field", (_, read, description) => {
  expect(read).toThrow(expect.objectContaining({ fields: [{ field: "f", description }] }));
});
