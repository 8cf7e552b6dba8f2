import { Code, ConnectError } from "@connectrpc/connect";
import { detailsOf } from "./error-details.ts";
import {
  AbortError,
  AuthenticationError,
  ConnectionError,
  type ErrorProperties,
  InvalidRequestError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
  TimeoutError,
  VxError,
} from "./errors.ts";
import { CLASSES } from "./gen/reasons.ts";

type ErrorClass = new (message: string, properties: ErrorProperties) => VxError;

/** The class of an error without a reason that this client knows: of a proxy, or of a newer server. */
const CLASS_OF_CODE: Partial<Record<Code, ErrorClass>> = {
  [Code.InvalidArgument]: InvalidRequestError,
  [Code.NotFound]: InvalidRequestError,
  [Code.FailedPrecondition]: InvalidRequestError,
  [Code.Aborted]: InvalidRequestError,
  [Code.Unauthenticated]: AuthenticationError,
  [Code.PermissionDenied]: PermissionDeniedError,
  [Code.ResourceExhausted]: RateLimitError,
};

/** The error that callers get for what a call threw. */
export function toVxError(thrown: unknown, idempotencyKey: string | undefined): VxError {
  if (thrown instanceof VxError) return thrown;
  const error = ConnectError.from(thrown);
  // Connect wraps what an interceptor throws.
  if (error.cause instanceof VxError) return error.cause;
  const details = detailsOf(error);
  const info = details.find((detail) => detail.$typeName === "google.rpc.ErrorInfo");
  const reason = info?.domain === "vx" ? info.reason.toLowerCase() : undefined;
  const properties = {
    code: nameOf(error.code),
    reason,
    requestId: error.metadata.get("x-request-id") ?? undefined,
    details,
    metadata: info?.metadata ?? {},
    headers: error.metadata,
    idempotencyKey,
    cause: thrown,
  };
  return new (classOf(error, reason))(error.rawMessage, properties);
}

function classOf(error: ConnectError, reason: string | undefined): ErrorClass {
  if (reason !== undefined && Object.hasOwn(CLASSES, reason)) return CLASSES[reason as keyof typeof CLASSES];
  if (reason !== undefined) return CLASS_OF_CODE[error.code] ?? ServerError;
  if (error.code === Code.Canceled) return AbortError;
  if (error.code === Code.DeadlineExceeded) return TimeoutError;
  // Every response has headers; an error without them is one of the connection.
  if ([...error.metadata.keys()].length === 0) return ConnectionError;
  return CLASS_OF_CODE[error.code] ?? ServerError;
}

/** The name of a code in Connect, such as "failed_precondition". */
function nameOf(code: Code): string {
  return Code[code].replace(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase();
}
