import type { ServerResponse } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { DomainError, type Reason } from "../../domain/errors.ts";
import { toConnectError, withoutKeys } from "../errors/connect-error.ts";
import { sendRpcRefusal } from "../errors/refusal.ts";
import { type HttpRequest, type HttpResponse, isClosed, untilWritable } from "../http/message.ts";
import type { Protocol } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { encodeGrpcMessage, envelope, toNodeHeaders } from "../rpc/wire.ts";

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

/**
 * Errors that Connect itself raises, before or instead of a service: a malformed message, an unknown
 * compression, a body that is too large. They get a reason and details like every other error; a message that
 * cannot be parsed is an error of the caller, not an internal one.
 */
function explainOwnError(error: ConnectError): ConnectError {
  if (error.details.length > 0) return error;
  const { rawMessage: message } = error;
  switch (error.code) {
    case Code.Internal:
    case Code.InvalidArgument:
      return toConnectError(new DomainError("invalid_argument", { message, cause: error }));
    case Code.ResourceExhausted:
      return toConnectError(new DomainError("request_too_large", { message, cause: error }));
    case Code.Unimplemented:
      return toConnectError(new DomainError("unimplemented", { message, cause: error }));
    case Code.DeadlineExceeded:
      return toConnectError(new DomainError("deadline_exceeded", { message, cause: error }));
    default:
      return withoutKeys(error);
  }
}

/** gRPC: the status in the trailers. */
function explainTrailer(trailer: Headers): ConnectError | undefined {
  const error = findTrailerError(trailer);
  if (!error) return undefined;
  const explained = explainOwnError(error);
  if (explained !== error) setTrailerStatus(trailer, explained);
  return explained;
}

/** gRPC-Web and Connect: the status in the last piece of the body. Undefined if the piece is not an error. */
function explainPiece(
  protocol: Protocol,
  status: number,
  piece: Uint8Array,
): { readonly piece: Uint8Array; readonly error: ConnectError } | undefined {
  if (protocol === "grpc-web") {
    if (piece[0] !== trailerFlag) return undefined;
    const trailer = trailerParse(piece.subarray(5));
    const error = explainTrailer(trailer);
    return error && { piece: envelope(trailerFlag, trailerSerialize(trailer)), error };
  }
  if (protocol !== "connect" || status === 200) return undefined;
  const unread = new ConnectError("the call failed", Code.Unknown);
  const error = explainOwnError(errorFromJsonBytes(piece, undefined, unread));
  return { piece: errorToJsonBytes(error, undefined), error };
}
