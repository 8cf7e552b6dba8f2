import { redactKeys } from "./api-key.ts";

/** The table of errors: each reason with its gRPC code, REST status, type and text. */

export type GrpcCode =
  | "INVALID_ARGUMENT"
  | "DEADLINE_EXCEEDED"
  | "NOT_FOUND"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "UNIMPLEMENTED"
  | "INTERNAL"
  | "UNAVAILABLE"
  | "UNAUTHENTICATED";

type ErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "permission_error"
  | "billing_error"
  | "rate_limit_error"
  | "api_error";

/** SDKs retry these statuses unless `x-should-retry` forbids it, so each of these rows sets it. */
type RetriedStatus = 409 | 429;
type OtherStatus = 400 | 401 | 402 | 403 | 404 | 405 | 413 | 415 | 422 | 500 | 501 | 502 | 503 | 504;

type Row = {
  readonly code: GrpcCode;
  readonly status: RetriedStatus | OtherStatus;
  readonly type: ErrorType;
  readonly message: string;
  /** The REST header `x-should-retry`: whether the same call can succeed later. Not sent if undefined. */
  readonly shouldRetry?: boolean | undefined;
};

export const ERRORS = {
  invalid_argument: row("INVALID_ARGUMENT", 400, "invalid_request_error", "The request is not valid."),
  context_length_exceeded: row(
    "INVALID_ARGUMENT",
    400,
    "invalid_request_error",
    "The messages do not fit the context window of the model.",
  ),
  missing_api_key: row(
    "UNAUTHENTICATED",
    401,
    "authentication_error",
    "No API key was sent. Send it in the header 'Authorization: Bearer <API_KEY>'.",
  ),
  invalid_api_key: row(
    "UNAUTHENTICATED",
    401,
    "authentication_error",
    "The API key is not valid. Check that it was copied whole.",
  ),
  revoked_api_key: row(
    "UNAUTHENTICATED",
    401,
    "authentication_error",
    "The API key was revoked. Create another one.",
  ),
  expired_api_key: row(
    "UNAUTHENTICATED",
    401,
    "authentication_error",
    "The API key has expired. Create another one.",
  ),
  invalid_operator_token: row(
    "UNAUTHENTICATED",
    401,
    "authentication_error",
    "The operator token is missing or wrong. It is the value of VX_ADMIN_TOKEN, or the file 'admin-token' in the data folder.",
  ),
  insufficient_balance: row(
    "FAILED_PRECONDITION",
    402,
    "billing_error",
    "The balance is not sufficient. Top up the account.",
  ),
  insufficient_scope: row(
    "PERMISSION_DENIED",
    403,
    "permission_error",
    "The API key lacks the scope this call needs.",
  ),
  not_found: row("NOT_FOUND", 404, "invalid_request_error", "There is nothing at this address."),
  model_not_found: row("NOT_FOUND", 404, "invalid_request_error", "There is no such model."),
  method_not_allowed: row(
    "UNIMPLEMENTED",
    405,
    "invalid_request_error",
    "This address does not take this HTTP method.",
  ),
  key_limit_reached: row(
    "FAILED_PRECONDITION",
    409,
    "invalid_request_error",
    "The account has as many active keys as its plan allows.",
    false,
  ),
  idempotency_in_progress: row(
    "ABORTED",
    409,
    "invalid_request_error",
    "A call with this idempotency key is still running. Try again when it has ended.",
    true,
  ),
  generation_interrupted: row(
    "ABORTED",
    409,
    "invalid_request_error",
    "The response of the first call with this idempotency key was cut. Send a new idempotency key to generate again.",
    false,
  ),
  request_too_large: row(
    "RESOURCE_EXHAUSTED",
    413,
    "invalid_request_error",
    "The request body is too large.",
  ),
  unsupported_media_type: row(
    "INVALID_ARGUMENT",
    415,
    "invalid_request_error",
    "This content type is not understood here.",
  ),
  idempotency_key_reused: row(
    "INVALID_ARGUMENT",
    422,
    "invalid_request_error",
    "The idempotency key was used before, with another request.",
  ),
  rate_limit_exceeded: row(
    "RESOURCE_EXHAUSTED",
    429,
    "rate_limit_error",
    "The per-minute request limit of the key is exceeded. Wait until the next minute begins.",
    true,
  ),
  key_creation_limit_reached: row(
    "RESOURCE_EXHAUSTED",
    429,
    "rate_limit_error",
    "The account's own keys created as many keys within this hour as the plan allows. Wait until the next hour begins.",
    false,
  ),
  too_many_failed_authentications: row(
    "RESOURCE_EXHAUSTED",
    429,
    "rate_limit_error",
    "Too many calls with unknown, revoked or expired keys came from this address. Wait until the next minute begins.",
    true,
  ),
  unexpected_compression: row(
    "INTERNAL",
    400,
    "invalid_request_error",
    "The message is flagged as compressed, but the call names no compression. Name it in the header 'grpc-encoding' or 'connect-content-encoding', or send the message without the flag.",
  ),
  internal: row(
    "INTERNAL",
    500,
    "api_error",
    "Something went wrong on our side. The request id helps us find it.",
  ),
  unimplemented: row("UNIMPLEMENTED", 501, "api_error", "This operation is not available yet.", false),
  upstream_error: row(
    "UNAVAILABLE",
    502,
    "api_error",
    "The model could not be reached, or did not finish its reply. Try again shortly.",
  ),
  unavailable: row(
    "UNAVAILABLE",
    503,
    "api_error",
    "The service cannot take calls at the moment. Try again shortly.",
  ),
  overloaded: row("UNAVAILABLE", 503, "api_error", "The service is overloaded. Try again shortly."),
  // A call that reached an upstream is charged, so a retry costs again.
  deadline_exceeded: row(
    "DEADLINE_EXCEEDED",
    504,
    "api_error",
    "The call took longer than its deadline.",
    false,
  ),
} as const satisfies Record<string, Row>;

export type Reason = keyof typeof ERRORS;

type FieldViolation = { readonly field: string; readonly description: string };

export type DomainErrorOptions = {
  /** For the caller; the default is the table's text. */
  readonly message?: string | undefined;
  /** For the log only. */
  readonly cause?: unknown;
  readonly fields?: readonly FieldViolation[];
  /** Data for programs, such as a balance. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly retryAfterSeconds?: number;
};

/**
 * The only error that services and the store throw on purpose. Its texts may repeat the caller's input, so
 * keys are redacted here, before any protocol reads them.
 */
export class DomainError extends Error {
  readonly reason: Reason;
  readonly fields: readonly FieldViolation[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterSeconds: number | undefined;

  constructor(reason: Reason, options: DomainErrorOptions = {}) {
    super(redactKeys(options.message ?? ERRORS[reason].message), { cause: options.cause });
    this.name = "DomainError";
    this.reason = reason;
    this.fields = (options.fields ?? []).map(({ field, description }) => ({
      field: redactKeys(field),
      description: redactKeys(description),
    }));
    this.metadata = Object.fromEntries(
      Object.entries(options.metadata ?? {}).map((entry) => entry.map(redactKeys)),
    );
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  /** A 400 that names the field. */
  static ofField(field: string, description: string): DomainError {
    return new DomainError("invalid_argument", {
      message: `${field}: ${description}`,
      fields: [{ field, description }],
    });
  }
}

export function isReason(text: string): text is Reason {
  return Object.hasOwn(ERRORS, text);
}

function row(
  code: GrpcCode,
  status: RetriedStatus,
  type: ErrorType,
  message: string,
  shouldRetry: boolean,
): Row;
function row(
  code: GrpcCode,
  status: OtherStatus,
  type: ErrorType,
  message: string,
  shouldRetry?: boolean,
): Row;
function row(
  code: GrpcCode,
  status: RetriedStatus | OtherStatus,
  type: ErrorType,
  message: string,
  shouldRetry?: boolean,
): Row {
  return { code, status, type, message, shouldRetry };
}
