import { Code, ConnectError } from "@connectrpc/connect";
import { redactKeys } from "../../domain/api-key.ts";
import { DomainError, ERRORS, type GrpcCode } from "../../domain/errors.ts";
import { errorDetails } from "./error-details.ts";

const CODES: Record<GrpcCode, Code> = {
  INVALID_ARGUMENT: Code.InvalidArgument,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  NOT_FOUND: Code.NotFound,
  PERMISSION_DENIED: Code.PermissionDenied,
  RESOURCE_EXHAUSTED: Code.ResourceExhausted,
  FAILED_PRECONDITION: Code.FailedPrecondition,
  ABORTED: Code.Aborted,
  UNIMPLEMENTED: Code.Unimplemented,
  INTERNAL: Code.Internal,
  UNAVAILABLE: Code.Unavailable,
  UNAUTHENTICATED: Code.Unauthenticated,
};

/**
 * The error that gRPC, gRPC-Web and Connect callers get. Unexpected errors are reported only as "internal".
 */
export function toConnectError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return withoutKeys(error);
  const known = asDomainError(error);
  return new ConnectError(
    known.message,
    CODES[ERRORS[known.reason].code],
    undefined,
    errorDetails(known) as never,
    error,
  );
}

/** Removes keys from an error of Connect itself, whose text may repeat caller input. */
export function withoutKeys(error: ConnectError): ConnectError {
  const text = redactKeys(error.rawMessage);
  if (text === error.rawMessage) return error;
  const clean = new ConnectError(text, error.code, error.metadata, undefined, error);
  clean.details = error.details;
  return clean;
}

export function asDomainError(error: unknown): DomainError {
  return error instanceof DomainError ? error : new DomainError("internal", { cause: error });
}
