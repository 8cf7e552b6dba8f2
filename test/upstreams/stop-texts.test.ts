import fc from "fast-check";
import { expect, test } from "vitest";
import { StopTexts } from "../../src/upstreams/sandbox/pieces.ts";
import { runs } from "../support/runs.ts";

function cut(pieces: readonly string[], stop: readonly string[]) {
  const stops = new StopTexts(stop);
  const passed = pieces.map((piece) => stops.filter(piece));
  return { text: passed.join("") + stops.flush(), stopped: stops.found !== undefined, found: stops.found, passed };
}

test.each([
  { what: "within a piece", pieces: ["one two three"], stop: ["two"], text: "one " },
  { what: "across two pieces", pieces: ["one tw", "o three"], stop: ["two"], text: "one " },
  { what: "across many pieces", pieces: [..."one two three"], stop: ["two"], text: "one " },
  { what: "at the very beginning", pieces: ["one"], stop: ["one"], text: "" },
  { what: "at the very end", pieces: ["one ", "two"], stop: ["two"], text: "one " },
  { what: "the one that is complete first", pieces: ["abcd"], stop: ["abcd", "bc"], text: "a" },
  { what: "the longer of two that end together", pieces: ["abcd"], stop: ["cd", "bcd"], text: "a" },
  { what: "after an incomplete match", pieces: ["aa", "ab"], stop: ["aab"], text: "a" },
  { what: "an emoji", pieces: ["x\ud83d", "\ude00y"], stop: ["😀"], text: "x" },
])("ends the text before a stop text: $what", ({ pieces, stop, text }) => {
  expect(cut(pieces, stop)).toMatchObject({ text, stopped: true });
});

test("the stop text that was found is known", () => {
  expect(cut(["ab", "cd"], ["cd", "bcd", "x"]).found).toBe("bcd");
  expect(cut(["ab", "cd"], ["x"]).found).toBeUndefined();
});

test("the possible start of a stop text is passed on when it does not match", () => {
  const { passed, text, stopped } = cut(["one tw", "ice ", "two"], ["twofold"]);
  expect(passed).toEqual(["one ", "twice ", ""]);
  expect({ text, stopped }).toEqual({ text: "one twice two", stopped: false });
});

test("without stop texts, or with empty ones, pieces pass unchanged", () => {
  expect(cut(["a", "b"], []).passed).toEqual(["a", "b"]);
  expect(cut(["a", "b"], [""])).toMatchObject({ text: "ab", stopped: false });
});

test("the size of the pieces has no effect", () => {
  const short = (min: number, max: number) => fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: min, maxLength: max });
  fc.assert(
    fc.property(fc.array(short(0, 6), { maxLength: 12 }), fc.array(short(1, 5), { maxLength: 4 }), (pieces, stop) => {
      const [inPieces, letterByLetter] = [cut(pieces, stop), cut([...pieces.join("")], stop)];
      expect(inPieces.text).toBe(letterByLetter.text);
      expect(inPieces.stopped).toBe(stop.some((text) => pieces.join("").includes(text)));
      expect(stop.some((text) => inPieces.text.includes(text))).toBe(false);
      expect(pieces.join("").startsWith(inPieces.text)).toBe(true);
    }),
    { numRuns: runs(2_000) },
  );
});
