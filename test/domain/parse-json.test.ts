import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "../../src/domain/json.ts";

test("a name with an escape is read correctly after one that begins with the characters of the escape", () => {
  // V8 reads the second text with the name of the first one.
  JSON.parse('{"first":1,"\\\\":2}');
  expect(parseJson('{"first":1,"\\n":2}')).toEqual({ first: 1, "\n": 2 });
});

const names = fc.constantFrom("\\\\", "\\n", "\\u0061", "a", "1", "\\u0031", "__proto__", "\\\\n", ":", '\\"');
const scalars = fc.constantFrom("1", '"\\\\"', "null", '"\\n"', "true");
const { value: texts } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    scalars,
    fc.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join(" , ")}]`),
    fc
      .array(fc.tuple(names, tie("value")), { maxLength: 4 })
      .map((members) => `{${members.map(([name, member]) => `"${name}" : ${member}`).join(",")}}`),
  ),
}));

/** Reads the same text with a member before the others, so that V8 cannot compare it with a text that it read. */
test("texts have the values that JSON.parse returns if it has read no other text", () => {
  let fresh = 0;
  fc.assert(
    fc.property(texts, (text) => {
      const alone = text.replaceAll("{", () => `{"fresh${fresh++}":0,`).replaceAll(",}", "}");
      const expected = JSON.parse(alone, (_, value) => {
        if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
        return Object.fromEntries(Object.entries(value).filter(([name]) => !name.startsWith("fresh")));
      });
      expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(expected));
    }),
    { numRuns: 300 },
  );
});

test.each(['{"\\n":1', '{"\\x":1}', '{"a\\n" 1}', '{"\\n":"\\"}', '{"\\n":1}}', '\\{"a":1}'])("%s is refused", (text) => {
  expect(() => parseJson(text)).toThrow(SyntaxError);
});

test("a long text whose last string does not end is refused at once", () => {
  const text = `{"${'\\"'.repeat(200_000)}`;
  // A search for its strings would take minutes, longer than a test may.
  expect(() => parseJson(text)).toThrow(SyntaxError);
});

test("10,000 names with escapes are read, and more are refused", () => {
  const textOf = (name: string, count: number) => `{${Array.from({ length: count }, (_, i) => `"${name}${i}":1`).join(",")}}`;
  expect(Object.keys(parseJson(textOf("\\u00e9", 10_000)) as object)[9_999]).toBe("é9999");
  expect(Object.keys(parseJson(textOf("\\n", 10_000)) as object)[9_999]).toBe("\n9999");
  expect(() => parseJson(textOf("\\u00e9", 10_001))).toThrow(SyntaxError);
});

test("a text of more than 1 MiB is read unless it has escaped names", () => {
  const text = `{"a":"${"x".repeat(1_048_576)}"`;
  expect(parseJson(`${text},"b":"\\n"}`)).toMatchObject({ b: "\n" });
  expect(() => parseJson(`${text},"\\n":1}`)).toThrow(SyntaxError);
});
