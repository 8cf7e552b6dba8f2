import type { ServerResponse } from "node:http";
import { Code } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { DomainError, type Reason } from "../../domain/errors.ts";
import { sendRpcRefusal } from "../errors/refusal.ts";
import { type HttpRequest, type HttpResponse, isClosed } from "../http.ts";
import type { Protocol } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { untilWritable } from "../until-writable.ts";
import { explainPiece, explainTrailer } from "./connect-own-errors.ts";
import { encodeGrpcMessage, toNodeHeaders } from "./node-headers.ts";

/** Refusals that Connect returns without a body: an unknown encoding in the query of a GET. */
const BARE_REFUSALS: Record<number, Reason> = { 405: "method_not_allowed", 415: "unsupported_media_type" };

/**
 * Sends the response of Connect. Resolves to the gRPC code of the call. Without an observation, errors of
 * Connect itself are sent unchanged.
 */
export async function respondRpc(
  result: UniversalServerResponse,
  protocol: Protocol,
  request: HttpRequest,
  response: HttpResponse,
  observation: Observation | undefined,
): Promise<Code | 0> {
  const refusal = result.body === undefined ? BARE_REFUSALS[result.status] : undefined;
  if (refusal === undefined) return await writeResponse(result, protocol, response, observation);
  const error = new DomainError(refusal);
  observation?.setFailure(error);
  sendRpcRefusal(request, response, error);
  return Code.Unknown;
}

/** Sends a response in pieces, with backpressure. */
async function writeResponse(
  result: UniversalServerResponse,
  protocol: Protocol,
  response: HttpResponse,
  observation: Observation | undefined,
): Promise<Code | 0> {
  const pieces = result.body?.[Symbol.asyncIterator]();
  try {
    // The first piece is read before the headers are sent: until then a service may set some.
    let piece = await pieces?.next();
    // TypeScript cannot call these methods on the union: the two response types declare them differently.
    const writer = response as ServerResponse;
    const head = { status: result.status, headers: toNodeHeaders(result.header) };
    if (observation?.hasFailed === false && piece && piece.done !== true) {
      const explained = explainPiece(protocol, result.status, piece.value);
      if (explained) {
        piece = { done: false, value: explained.piece };
        observation.setFailure(explained.error);
        if (protocol === "connect") {
          head.status = codeToHttpStatus(explained.error.code);
          head.headers["content-length"] = String(explained.piece.length);
        }
      }
    }
    writer.writeHead(head.status, head.headers);
    while (piece && piece.done !== true) {
      if (isClosed(response)) {
        await pieces?.return?.();
        return Code.Canceled;
      }
      if (!writer.write(piece.value)) await untilWritable(writer);
      piece = await pieces?.next();
    }
    if (result.trailer) {
      if (observation?.hasFailed === false) observation.setFailure(explainTrailer(result.trailer));
      encodeGrpcMessage(result.trailer);
      response.addTrailers(toNodeHeaders(result.trailer));
    }
    response.end();
    return codeOf(result);
  } catch (error) {
    // Pieces throw only if the caller disconnected; errors of the service are sent inside them.
    response.destroy();
    await pieces?.return?.();
    throw error;
  }
}

function codeOf(result: UniversalServerResponse): Code | 0 {
  const status = result.trailer?.get("grpc-status");
  if (status !== null && status !== undefined) return Number(status) as Code | 0;
  return result.status === 200 ? 0 : (CODE_OF_STATUS[result.status] ?? Code.Unknown);
}

/** The mapping of the Connect protocol; a failure in the observation is more exact. */
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
