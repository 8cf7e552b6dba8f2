import { STATUS_CODES } from "node:http";
import { DomainError } from "../domain/errors.ts";
import { errorBody } from "../rest/error-body.ts";
import { type HttpResponse, sendJson } from "./http.ts";

const MESSAGES = {
  400: "The request is no valid HTTP.",
  408: "The request took too long to arrive.",
  431: "The headers of the request are too large.",
} as const;

type BadRequestStatus = keyof typeof MESSAGES;

/** How a listener answers what never becomes a request. */
export function badRequestAnswers(drawRequestId: () => string) {
  return {
    onBadRequest: (status: BadRequestStatus) => rawAnswer(status, drawRequestId()),
    onLargeHeaders: (response: HttpResponse) => {
      const requestId = drawRequestId();
      response.setHeader("x-request-id", requestId);
      sendJson(response, 431, bodyOf(431, requestId));
    },
  };
}

function bodyOf(status: BadRequestStatus, requestId: string): string {
  return errorBody(new DomainError("invalid_argument", { message: MESSAGES[status] }), requestId);
}

function rawAnswer(status: BadRequestStatus, requestId: string): string {
  const body = bodyOf(status, requestId);
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
