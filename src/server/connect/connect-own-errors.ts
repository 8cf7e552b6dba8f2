import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { DomainError } from "../../domain/errors.ts";
import { toConnectError, withoutKeys } from "../errors/connect-error.ts";
import type { Protocol } from "../incoming-call.ts";
import { envelope } from "../rpc/envelope.ts";

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
export function explainTrailer(trailer: Headers): ConnectError | undefined {
  const error = findTrailerError(trailer);
  if (!error) return undefined;
  const explained = explainOwnError(error);
  if (explained !== error) setTrailerStatus(trailer, explained);
  return explained;
}

/** gRPC-Web and Connect: the status in the last piece of the body. Undefined if the piece is not an error. */
export function explainPiece(
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
