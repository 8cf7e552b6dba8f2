import { STATUS_CODES } from "node:http";
import { DomainError } from "../../domain/errors.ts";
import { errorBody } from "../errors/http-error.ts";
import type { Cors } from "./cors.ts";
import { type HttpRequest, type HttpResponse, sendJson } from "./message.ts";

const PROBLEMS = {
  invalid: [400, "The request is not valid HTTP."],
  timeout: [408, "The request took too long to arrive."],
  large_headers: [431, "The headers of the request are too large."],
  several_hosts: [400, "The request has more than one Host header."],
  tunnel: [400, "This server is no proxy, so it does not support CONNECT."],
  transfer_encoding: [400, 'The only transfer coding is "chunked", in HTTP/1.1.'],
} as const;

/** Why a listener refuses a request before it becomes a call. */
export type BadRequest = keyof typeof PROBLEMS;

/** The response to such a request: as raw text for the socket, or on a response object. */
export type BadRequestResponses = {
  readonly rawResponse: (problem: BadRequest, request: HttpRequest | undefined) => string;
  readonly answer: (problem: BadRequest, request: HttpRequest, response: HttpResponse) => void;
};

export function badRequestResponses(newRequestId: () => string, cors?: Cors): BadRequestResponses {
  return {
    rawResponse: (problem, request) => rawResponse(problem, newRequestId(), (request && cors?.headersFor(request)) ?? {}),
    answer: (problem, request, response) => {
      cors?.setHeaders(request, response);
      const requestId = newRequestId();
      response.setHeader("x-request-id", requestId);
      sendJson(response, PROBLEMS[problem][0], bodyOf(problem, requestId));
    },
  };
}

function bodyOf(problem: BadRequest, requestId: string): string {
  return errorBody(new DomainError("invalid_argument", { message: PROBLEMS[problem][1] }), requestId);
}

function rawResponse(problem: BadRequest, requestId: string, headers: Readonly<Record<string, string>>): string {
  const [status] = PROBLEMS[problem];
  const body = bodyOf(problem, requestId);
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "connection: close",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "cache-control: no-store",
    `x-request-id: ${requestId}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    body,
  ].join("\r\n");
}
