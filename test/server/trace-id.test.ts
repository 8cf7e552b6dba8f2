import { expect, test } from "vitest";
import { traceIdOf } from "../../src/server/trace-id.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const VALID = `00-${TRACE}-00f067aa0ba902b7-01`;

test.each([
  ["a valid header", [VALID]],
  ["a header of a later version with more fields", [`cc-${TRACE}-00f067aa0ba902b7-01-more`]],
])("%s gives its trace id", (_, values) => {
  expect(traceIdOf(values)).toBe(TRACE);
});

test.each<[string, string[]]>([
  ["no header", []],
  ["two headers", [VALID, VALID]],
  ["an empty header", [""]],
  ["capital letters", [VALID.toUpperCase()]],
  ["a trace id of zeros", [VALID.replace(TRACE, "0".repeat(32))]],
  ["a span id of zeros", [VALID.replace("00f067aa0ba902b7", "0".repeat(16))]],
  ["the version ff", [VALID.replace("00-", "ff-")]],
  ["more fields in version 00", [`${VALID}-more`]],
  ["text around it", [` ${VALID}`]],
  ["a line break", [`${VALID}\n`]],
  ["a short trace id", [VALID.replace(TRACE, TRACE.slice(1))]],
])("%s gives none", (_, values) => {
  expect(traceIdOf(values)).toBe("");
});
