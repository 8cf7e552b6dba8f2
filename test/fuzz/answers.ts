import { ERRORS, isReason } from "../../src/domain/errors.ts";
import type { FuzzRequest } from "./requests.ts";

export type FuzzAnswer = { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer };

/** Statuses that the HTTP parser sends before there is a request. All have one reason. */
const PARSER_STATUSES = [400, 408, 431];

/** Returns the violated rule, or undefined. */
export function faultOf(request: FuzzRequest, { status, headers, body }: FuzzAnswer): string | undefined {
  if (headers["x-request-id"] === undefined) return "there is no x-request-id";
  if (headers["set-cookie"] !== undefined) return "sets a cookie";
  if (status >= 200 && status < 300) return faultOfStream(headers, body);
  if (status >= 500) return `status ${status}`;
  if (status < 400) return `status ${status}`;
  if (body.length === 0 && request.method === "HEAD") return undefined;
  // The error formats of other protocols are not tested here.
  if (!request.target.startsWith("/v1") && !request.broken) return undefined;
  if (headers["grpc-status"] !== undefined) return undefined;
  return faultOfEnvelope(status, headers, body);
}

/** A started stream must end normally, because no upstream fails here. */
function faultOfStream(headers: FuzzAnswer["headers"], body: Buffer): string | undefined {
  if (headers["content-type"] !== "text/event-stream") return undefined;
  const text = body.toString();
  if (text.includes('data: {"error"')) return "an error within a stream";
  return text.includes("data: [DONE]\n\n") ? undefined : "a stream without its end";
}

function faultOfEnvelope(status: number, headers: FuzzAnswer["headers"], body: Buffer): string | undefined {
  let envelope: Record<string, unknown>;
  try {
    envelope = (JSON.parse(body.toString()) as { error: Record<string, unknown> }).error;
  } catch {
    return `status ${status} without JSON`;
  }
  const { code, request_id: requestId, details, message } = envelope ?? {};
  if (typeof code !== "string" || !isReason(code)) return `the unknown code ${code}`;
  const fits = ERRORS[code].status === status || (code === "invalid_argument" && PARSER_STATUSES.includes(status));
  if (!fits) return `status ${status} with the code ${code}`;
  if (requestId !== headers["x-request-id"]) return "another request id in the body";
  if (!Array.isArray(details) || details.length === 0) return "no details";
  if (typeof message !== "string" || message === "") return "no message";
  if (headers["content-type"] !== "application/json") return `the type ${headers["content-type"]}`;
  return undefined;
}
