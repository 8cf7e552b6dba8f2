import type { JsonObject } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { type Answer, allOf, type Wire } from "./wires.ts";

export function detail(name: string, fields: object): JsonObject {
  return { "@type": `google.rpc.${name}`, ...fields } as JsonObject;
}

/** The detail with pairs of a field and its description. */
export function bad(...pairs: readonly [field: string, description: string][]): JsonObject {
  const violations = pairs.map(([field, description]) => ({ field, description, reason: "" }));
  return detail("BadRequest", { field_violations: violations });
}

export type Refusal = {
  readonly code: string;
  readonly reason: string;
  readonly text: string | RegExp;
  readonly metadata?: object | undefined;
  /** Those that follow the ErrorInfo. */
  readonly details?: readonly object[];
  /** Those that tell the caller what to do. */
  readonly headers?: object;
};

const TELLING = ["www-authenticate", "retry-after", "x-should-retry"];

/** Every wire shows this error and nothing before it. */
export function expectRefusals(
  over: readonly Wire[],
  answers: Readonly<Record<string, Answer>>,
  { code, reason, text, metadata = {}, details = [], headers = {} }: Refusal,
  before: readonly unknown[] = [],
): void {
  const seen = Object.entries(answers).map(([name, answer]) => {
    const telling = Object.entries(answer.headers).filter(([header]) => TELLING.includes(header));
    return [name, { messages: answer.messages, error: answer.error, headers: Object.fromEntries(telling) }];
  });
  const info = detail("ErrorInfo", { reason: reason.toUpperCase(), domain: "vx", metadata });
  const error = { code, text: typeof text === "string" ? text : expect.stringMatching(text), details: [info, ...details] };
  expect(Object.fromEntries(seen)).toEqual(allOf(over, { messages: before, error, headers }));
}
