import { expect, test } from "vitest";
import { traceHeadersOf } from "../../src/domain/call-trace.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { traceParentOf } from "../../src/server/interceptors/observe.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const VALID = `00-${TRACE}-${SPAN}-01`;
const KEY = generateKey(0 as never, (size) => Buffer.alloc(size, 7)).secret;

const parentOf = (traceparent: readonly string[], tracestate: readonly string[] = []) =>
  traceParentOf({ headers: (name) => (name === "traceparent" ? traceparent : tracestate) });

test("a valid header gives the trace, the span and the flags of the caller", () => {
  expect(parentOf([VALID])).toEqual({ traceId: TRACE, spanId: SPAN, flags: 1, state: "" });
  expect(parentOf([VALID.replace(/01$/, "00")])).toMatchObject({ flags: 0 });
});

test("a header of a later version with more fields is read, and continued as version 00", () => {
  const parent = parentOf([`cc-${TRACE}-${SPAN}-01-more`]);
  expect(parent && traceHeadersOf(parent)).toEqual({ traceparent: VALID });
});

test("the states of other tracing systems are continued in their order", () => {
  const parent = parentOf([VALID], ["a=1,b=2", "c=3"]);
  expect(parent && traceHeadersOf(parent)).toEqual({ traceparent: VALID, tracestate: "a=1,b=2,c=3" });
});

test("empty members and spaces around members are left out", () => {
  const parent = parentOf([VALID], ["a=1 , ,b=x y", "", "\t0tenant@system=2"]);
  expect(parent?.state).toBe("a=1,b=x y,0tenant@system=2");
});

test("a state has at most 32 members", () => {
  const states = Array.from({ length: 33 }, (_, i) => `k${i}=${i}`);
  expect(parentOf([VALID], states.slice(1))?.state).toBe(states.slice(1).join(","));
  expect(parentOf([VALID], states)?.state).toBe("");
});

test.each([
  ["too long", ["a", "b", "c"].map((key) => `${key}=${"x".repeat(170)}`).join(",")],
  ["with a value that is too long", `a=${"x".repeat(257)}`],
  ["without a value", "a="],
  ["without a key", "=1"],
  ["without a sign", "a"],
  ["with a second sign", "a=b=c"],
  ["with a capital letter in a key", "A=1"],
  ["with a space in a key", "a b=1"],
  ["with the same key twice", "a=1,b=2,a=3"],
  ["with one wrong member", "a=1,b"],
  ["with other characters than visible ones", "a=ä"],
  ["with a key", `a=${KEY}`],
])("a state %s is not continued", (_, state) => {
  expect(parentOf([VALID], [state])).toEqual({ traceId: TRACE, spanId: SPAN, flags: 1, state: "" });
});

test.each<[string, string[]]>([
  ["no header", []],
  ["two headers", [VALID, VALID]],
  ["an empty header", [""]],
  ["capital letters", [VALID.toUpperCase()]],
  ["a trace id of zeros", [VALID.replace(TRACE, "0".repeat(32))]],
  ["a span id of zeros", [VALID.replace(SPAN, "0".repeat(16))]],
  ["the version ff", [VALID.replace("00-", "ff-")]],
  ["more fields in version 00", [`${VALID}-more`]],
  ["text around it", [` ${VALID}`]],
  ["a line break", [`${VALID}\n`]],
  ["a short trace id", [VALID.replace(TRACE, TRACE.slice(1))]],
])("%s gives none", (_, values) => {
  expect(parentOf(values)).toBeUndefined();
});
