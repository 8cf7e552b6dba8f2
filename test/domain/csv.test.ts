import { expect, test } from "vitest";
import { csvLine } from "../../src/domain/csv.ts";

test.each([
  ["=1+1", "'=1+1"],
  ["+1+1", "'+1+1"],
  ["@SUM(1)", "'@SUM(1)"],
  ["\uff1d1+1", "'\uff1d1+1"],
  ["\uff0b1", "'\uff0b1"],
  ["-$0.50", "-$0.50"],
  ["-0.5", "-0.5"],
  ['a "b", c', '"a ""b"", c"'],
])("the cell %j is written as %j", (text, cell) => {
  expect(csvLine([text, "x"])).toBe(`${cell},x\r\n`);
});
