import { ERRORS, isReason } from "../../src/domain/errors.ts";
import type { FuzzRequest } from "./requests.ts";

export type FuzzAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

/** What the parser answers before there is a request; the table of errors has one reason for all of it. */
const PARSER_STATUSES = [400, 408, 431];

/** What is wrong with the answer; undefined if nothing is. */
export function faultOf(request: FuzzRequest, { status, headers, body }: FuzzAnswer): string | undefined {
  if (headers["x-request-id"] === undefined) return "there is no x-request-id";
  if (headers["set-cookie"] !== undefined) return "sets a cookie";
  if (status >= 200 && status < 300) return faultOfStream(headers, body);
  if (status >= 500) return `status ${status}`;
  if (status < 400) return `status ${status}`;
  if (body.length === 0 && request.method === "HEAD") return undefined;
  // A protocol of its own tells errors in its own form, and is not tested here.
  if (!request.target.startsWith("/v1") && !request.broken) return undefined;
  if (headers["grpc-status"] !== undefined) return undefined;
  return faultOfEnvelope(status, headers, body);
}

/** A stream that has begun ends as it should, or says why not, which nothing here is a reason for. */
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
  const fits =
    ERRORS[code].status === status || (code === "invalid_argument" && PARSER_STATUSES.includes(status));
  if (!fits) return `status ${status} with the code ${code}`;
  if (requestId !== headers["x-request-id"]) return "another request id in the body";
  if (!Array.isArray(details) || details.length === 0) return "no details";
  if (typeof message !== "string" || message === "") return "no message";
  if (headers["content-type"] !== "application/json") return `the type ${headers["content-type"]}`;
  return undefined;
}
