import { expect } from "vitest";
import { ERRORS, type Reason } from "../../src/domain/errors.ts";
import { type RawAnswer, sendHttp1, sendHttp2 } from "../support/raw.ts";

/** HTTP/1.1 and HTTP/2, for tests that apply to both. */
export const https = [
  { name: "HTTP/1.1", send: sendHttp1 },
  { name: "HTTP/2", send: sendHttp2 },
] as const;

export const JSON_BODY = { "content-type": "application/json" };

export type Detail = { readonly "@type": string; readonly [name: string]: unknown };

export type Envelope = {
  readonly code: Reason;
  readonly type: string;
  readonly message: string;
  readonly param: string | null;
  readonly status: string;
  readonly details: readonly Detail[];
  readonly request_id: string;
};

export function jsonOf(answer: RawAnswer): Record<string, unknown> {
  return JSON.parse(answer.body.toString()) as Record<string, unknown>;
}

/** Checks the error in the status, headers and body of the response, and returns it. */
export function expectError(answer: RawAnswer, reason: Reason, param: string | null = null): Envelope {
  const envelope = checkEnvelope(answer);
  expect({ code: envelope.code, param: envelope.param }, envelope.message).toEqual({ code: reason, param });
  return envelope;
}

/** Checks an error in the form of Anthropic's API. */
export function expectAnthropicError(answer: RawAnswer, reason: Reason): void {
  expect(answer.status).toBe(ERRORS[reason].status);
  expect(jsonOf(answer)).toMatchObject({ type: "error", error: { code: reason } });
}

/** The same for an invalid request, with any field. */
export function expectInvalid(answer: RawAnswer): Envelope {
  const envelope = checkEnvelope(answer);
  expect(envelope.code, envelope.message).toBe("invalid_argument");
  return envelope;
}

/** Checks the properties that every error has. */
export function checkEnvelope(answer: RawAnswer): Envelope {
  expect(answer.headers["content-type"]).toBe("application/json");
  const { error: envelope, ...rest } = jsonOf(answer) as { error: Envelope };
  expect(rest).toEqual({});
  expect(Object.keys(envelope)).toEqual(["code", "type", "message", "param", "status", "details", "request_id"]);
  const { code, status, type, shouldRetry } = ERRORS[envelope.code];
  expect(answer.headers["x-should-retry"]).toBe(shouldRetry?.toString());
  expect({ http: answer.status, status: envelope.status, type: envelope.type }).toEqual({ http: status, status: code, type });
  expect(envelope.request_id).toBe(answer.headers["x-request-id"]);
  expect(envelope.details[0]).toMatchObject({
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: envelope.code.toUpperCase(),
    domain: "vx",
  });
  const bad = envelope.details.find((detail) => detail["@type"].endsWith("google.rpc.BadRequest"));
  const fields = (bad?.field_violations ?? []) as { field: string; description: string }[];
  expect(fields[0]?.field ?? null).toBe(envelope.param);
  return envelope;
}
