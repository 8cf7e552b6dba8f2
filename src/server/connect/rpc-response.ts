import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { Code } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { explainPiece, explainTrailer } from "../errors/own-errors.ts";
import type { Call } from "../gate/call.ts";
import type { HttpResponse } from "../http.ts";
import { isGone } from "../rest/gone.ts";

/** Sends a response in pieces, with backpressure. Resolves to the gRPC code of the call. */
export async function writeUniversalResponse(
  answer: UniversalServerResponse,
  response: HttpResponse,
  call: Call | undefined,
): Promise<Code | 0> {
  const pieces = answer.body?.[Symbol.asyncIterator]();
  try {
    // The first piece is read before the headers are sent: until then a service may set some.
    let piece = await pieces?.next();
    // TypeScript cannot call these methods on the union: the two response types declare them differently.
    const writer = response as ServerResponse;
    const head = { status: answer.status, headers: toNodeHeaders(answer.header) };
    if (call && call.failure === undefined && piece && piece.done !== true) {
      const explained = explainPiece(call.protocol, answer.status, piece.value);
      if (explained) {
        piece = { done: false, value: explained.piece };
        call.failure = explained.error;
        if (call.protocol === "connect") {
          head.status = codeToHttpStatus(explained.error.code);
          head.headers["content-length"] = String(explained.piece.length);
        }
      }
    }
    writer.writeHead(head.status, head.headers);
    while (piece && piece.done !== true) {
      if (isGone(response)) {
        await pieces?.return?.();
        return Code.Canceled;
      }
      if (!writer.write(piece.value)) await writable(response);
      piece = await pieces?.next();
    }
    if (answer.trailer && call && call.failure === undefined) call.failure = explainTrailer(answer.trailer);
    if (answer.trailer) {
      encodeMessage(answer.trailer);
      response.addTrailers(toNodeHeaders(answer.trailer));
    }
    response.end();
    return codeOf(answer);
  } catch (error) {
    // Pieces throw only if the caller disconnected; errors of the service are sent inside them.
    response.destroy();
    await pieces?.return?.();
    throw error;
  }
}

/** Connect escapes more than gRPC requires, and Google's client for Node unescapes only what is required. */
export function encodeMessage(trailer: Headers): void {
  const message = trailer.get("grpc-message");
  if (message === null) return;
  const text = decodeURIComponent(message);
  trailer.set("grpc-message", text.replace(/[^\x20-\x7e]|%/gu, encodeURIComponent));
}

/** Waits until the response can be written again or is closed. */
async function writable(response: HttpResponse): Promise<void> {
  if (isGone(response)) return;
  const waiting = new AbortController();
  const options = { signal: waiting.signal };
  try {
    await Promise.race([once(response, "drain", options), once(response, "close", options)]);
  } finally {
    waiting.abort();
  }
}

function codeOf(answer: UniversalServerResponse): Code | 0 {
  const status = answer.trailer?.get("grpc-status");
  if (status !== null && status !== undefined) return Number(status) as Code | 0;
  return answer.status === 200 ? 0 : (CODE_OF_STATUS[answer.status] ?? Code.Unknown);
}

/** The mapping of the Connect protocol; the failure recorded on the call, if any, is more exact. */
const CODE_OF_STATUS: Record<number, Code> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  405: Code.Unimplemented,
  409: Code.Aborted,
  413: Code.ResourceExhausted,
  415: Code.InvalidArgument,
  429: Code.ResourceExhausted,
  499: Code.Canceled,
  500: Code.Internal,
  501: Code.Unimplemented,
  503: Code.Unavailable,
  504: Code.DeadlineExceeded,
};

export function toNodeHeaders(headers: Headers | undefined): Record<string, string> {
  return headers ? Object.fromEntries(headers) : {};
}
