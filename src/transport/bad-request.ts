import { STATUS_CODES } from "node:http";
import { DomainError } from "../domain/errors.ts";
import { errorBody } from "../rest/error-body.ts";

const MESSAGES = {
  400: "The request is no valid HTTP.",
  408: "The request took too long to arrive.",
  431: "The headers of the request are too large.",
} as const;

/** The answer to bytes that never became a request, ready for the wire. */
export function badRequestResponse(status: 400 | 408 | 431, requestId: string): string {
  const body = errorBody(new DomainError("invalid_argument", { message: MESSAGES[status] }), requestId);
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "connection: close",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    "",
    body,
  ].join("\r\n");
}
