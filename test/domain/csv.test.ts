import { expect, test } from "vitest";
import { csvLine } from "../../src/domain/csv.ts";

test.each([
  ["=1+1", "'=1+1"],
  ["+1+1", "'+1+1"],
  ["@SUM(1)", "'@SUM(1)"],
  ["\uff1d1+1", "'\uff1d1+1"],
  ["\uff0b1", "'\uff0b1"],
  [" =1+1", "' =1+1"],
  ["\u00a0\uff0d1", "'\u00a0\uff0d1"],
  ["a;=1+1;b", "a;'=1+1;b"],
  ["a; @SUM(1)", "a; '@SUM(1)"],
  ["a\t+1+1", "a\t'+1+1"],
  ["a\n-1+1;b", '"a\n\'-1+1;b"'],
  ["\n=1+1", "\"'\n'=1+1\""],
  ["a = b; c - d", "a = b; c - d"],
  ["-$0.50", "-$0.50"],
  ["-¥5", "-¥5"],
  ["-CHF 0.50", "-CHF 0.50"],
  ["-CHF 0.50+1", "'-CHF 0.50+1"],
  ["-0.5", "-0.5"],
  ['a "b", c', '"a ""b"", c"'],
])("the cell %j is written as %j", (text, cell) => {
  expect(csvLine([text, "x"])).toBe(`${cell},x\r\n`);
});
