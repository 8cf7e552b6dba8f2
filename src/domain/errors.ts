import { redactKeys } from "./credentials.ts";

/** The table of errors: the REST status and the message of each reason, and with the status the gRPC code and the type. */

/** What each REST status is in gRPC, and the type of its errors in OpenAI's API. */
const STATUSES = {
  400: ["INVALID_ARGUMENT", "invalid_request_error"],
  401: ["UNAUTHENTICATED", "authentication_error"],
  402: ["FAILED_PRECONDITION", "billing_error"],
  403: ["PERMISSION_DENIED", "permission_error"],
  404: ["NOT_FOUND", "invalid_request_error"],
  405: ["UNIMPLEMENTED", "invalid_request_error"],
  409: ["FAILED_PRECONDITION", "invalid_request_error"],
  410: ["FAILED_PRECONDITION", "invalid_request_error"],
  413: ["RESOURCE_EXHAUSTED", "invalid_request_error"],
  415: ["INVALID_ARGUMENT", "invalid_request_error"],
  422: ["INVALID_ARGUMENT", "invalid_request_error"],
  429: ["RESOURCE_EXHAUSTED", "rate_limit_error"],
  500: ["INTERNAL", "api_error"],
  501: ["UNIMPLEMENTED", "api_error"],
  502: ["UNAVAILABLE", "api_error"],
  503: ["UNAVAILABLE", "api_error"],
  504: ["DEADLINE_EXCEEDED", "api_error"],
} as const;

export type ErrorStatus = keyof typeof STATUSES;
/** SDKs retry these statuses unless `x-should-retry` forbids it, so each of these rows sets it. */
type RetriedStatus = 409 | 429;
export type GrpcCode = (typeof STATUSES)[ErrorStatus][0] | "ABORTED";

type Row = {
  readonly code: GrpcCode;
  readonly status: ErrorStatus;
  readonly type: (typeof STATUSES)[ErrorStatus][1];
  readonly message: string;
  /** The REST header `x-should-retry`: whether the same call can succeed later. Not sent if undefined. */
  readonly shouldRetry?: boolean | undefined;
};

export const ERRORS = {
  invalid_argument: row(400, "The request is not valid."),
  context_length_exceeded: row(400, "The messages exceed the context window of the model. Shorten them or use another model."),
  thread_unsupported_request: row(400, "Stored threads are not supported. Leave out `thread` and send the whole conversation."),
  max_cost_too_low: row(
    400,
    "The value of max_cost_micros does not cover the input and one token of output. Raise it or shorten the messages.",
  ),
  missing_api_key: row(401, "No API key was sent. Send it in the header 'Authorization: Bearer <API_KEY>'."),
  invalid_api_key: row(401, "The API key is not valid. Check that it is complete."),
  revoked_api_key: row(401, "The API key was revoked. Use another key."),
  expired_api_key: row(401, "The API key has expired. Use another key."),
  invalid_operator_token: row(
    401,
    "The operator token is missing, invalid or revoked. Send the token of an operator, the value of VX_ADMIN_TOKEN, or the content of the file 'admin-token' in the data folder.",
  ),
  invalid_session: row(401, "The session has expired or was ended. Sign in again."),
  insufficient_balance: row(402, "The balance is too low for this call. Add credit to the account."),
  payment_reversed: row(
    402,
    "A payment into the account was refunded or disputed after it was spent. Top up the account.",
    false,
  ),
  budget_exceeded: row(402, "A limit of cost does not cover this call. Raise the limit or wait for its next window.", false),
  insufficient_scope: row(403, "The API key does not have the scope that this method requires."),
  model_not_allowed: row(403, "The API key cannot use this model. GET /v1/models lists the models that it can use."),
  address_not_allowed: row(403, "The API key cannot be used from this address."),
  account_suspended: row(403, "The account is suspended. Contact the operator of this service."),
  insufficient_role: row(403, "The operator or the member does not have the role that this method requires."),
  sign_up_refused: row(403, "This server creates no account for this person. Contact the operator of this service."),
  invalid_invitation: row(
    403,
    "The invitation was used, has expired, was deleted, or is for another e-mail address. Ask for a new one.",
  ),
  invalid_report_signature: row(403, "The leak report has no valid signature. Sign the body with a key of VX_LEAK_KEYS_FILE."),
  not_found: row(404, "The resource does not exist. Check the path."),
  model_not_found: row(404, "The model does not exist. List the models with GET /v1/models."),
  method_not_allowed: row(405, "This path does not support this HTTP method."),
  cursor_expired: row(
    410,
    "The event that `after` names is older than the kept events. Leave out `after` to start with the oldest one.",
  ),
  webhook_limit_reached: row(409, "The maximum number of webhooks exists. Delete a webhook that is not used.", false),
  member_limit_reached: row(409, "The maximum number of members or invitations exists.", false),
  last_owner: row(409, "The account has no other owner. Make another member an owner first.", false),
  webhook_disabled: row(409, "The webhook is disabled and receives nothing. Enable it first.", false),
  key_limit_reached: row(409, "The account has the maximum number of active keys of the plan. Revoke an unused key.", false),
  last_admin: row(
    409,
    "The last operator with the role admin cannot be revoked or get another role. Create another one first.",
    false,
  ),
  idempotency_in_progress: row(409, "A call with this idempotency key is still running. Retry after it ends.", true, "ABORTED"),
  generation_interrupted: row(
    409,
    "The response of the first call with this idempotency key was interrupted. To generate again, send a new idempotency key.",
    false,
    "ABORTED",
  ),
  request_too_large: row(413, "The request body is too large. Send less data."),
  unsupported_media_type: row(415, "The content type is not supported. Send application/json."),
  idempotency_key_reused: row(422, "The idempotency key was used with another request. Send a new idempotency key."),
  rate_limit_exceeded: row(429, "The requests per minute of the key are used up. Retry in the next minute.", true),
  key_creation_limit_reached: row(
    429,
    "The account created the maximum number of keys per hour of the plan. Retry in the next hour.",
    false,
  ),
  token_limit_exceeded: row(
    429,
    "A limit of tokens does not cover this call. Lower max_tokens or wait for the next window of the limit.",
    false,
  ),
  generation_limit_exceeded: row(429, "A limit of generations is used up. Wait for its next window.", false),
  concurrency_limit_reached: row(429, "The maximum number of running generations is reached. Retry when one has ended.", true),
  topup_limit_reached: row(
    429,
    "The account has 20 top-ups that are not paid. Pay one of them, or retry when one has expired, a day after its creation.",
    false,
  ),
  too_many_failed_authentications: row(
    429,
    "Too many calls with unknown, revoked or expired keys came from this IP address. Retry in the next minute.",
    true,
  ),
  unexpected_compression: row(
    400,
    "The message is flagged as compressed, but the call does not declare a compression. Declare it in the header 'grpc-encoding' or 'connect-content-encoding', or do not compress the message.",
    undefined,
    "INTERNAL",
  ),
  internal: row(500, "An internal error occurred. Report it with the request id."),
  payments_not_configured: row(501, "This server takes no payments. Contact the operator of this service to add credit.", false),
  unimplemented: row(501, "This method is not available yet.", false),
  upstream_error: row(502, "The upstream of the model failed or is not reachable. Retry later."),
  unavailable: row(503, "The service is temporarily unavailable. Retry later."),
  overloaded: row(503, "The service is overloaded. Retry later."),
  // A call that reached an upstream is charged, so a retry costs again.
  deadline_exceeded: row(504, "The deadline of the call passed before the reply was complete.", false),
} as const satisfies Record<string, Row>;

export type Reason = keyof typeof ERRORS;

const LIMIT_COVERS = "the limit covers the call when running calls have ended, or when it resets within a minute";

/** When `x-should-retry` is true, for the reasons where it depends on the call. Otherwise it is false. */
export const RETRIED_IF: Partial<Record<Reason, string>> = {
  insufficient_balance: "the balance covers the call when running calls have ended",
  budget_exceeded: LIMIT_COVERS,
  token_limit_exceeded: LIMIT_COVERS,
  generation_limit_exceeded: LIMIT_COVERS,
  concurrency_limit_reached: "the limit is not 0",
};

type FieldViolation = { readonly field: string; readonly description: string };

export type DomainErrorOptions = {
  /** The text for the caller. Default: the message of the table. */
  readonly message?: string | undefined;
  /** For the log only. */
  readonly cause?: unknown;
  readonly fields?: readonly FieldViolation[];
  /** Data for programs, such as a balance. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly retryAfterSeconds?: number;
  /** Replaces what the table says. */
  readonly shouldRetry?: boolean;
};

/**
 * The only error that services and the store throw deliberately. Its texts can contain input of the caller, so keys
 * are redacted here.
 */
export class DomainError extends Error {
  readonly reason: Reason;
  readonly fields: readonly FieldViolation[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterSeconds: number | undefined;
  /** The REST header `x-should-retry`; not sent if undefined. */
  readonly shouldRetry: boolean | undefined;

  constructor(reason: Reason, options: DomainErrorOptions = {}) {
    super(presentable(options.message ?? ERRORS[reason].message), { cause: options.cause });
    this.name = "DomainError";
    this.reason = reason;
    this.fields = (options.fields ?? []).map(({ field, description }) => ({
      field: presentable(field),
      description: presentable(description),
    }));
    this.metadata = Object.fromEntries(Object.entries(options.metadata ?? {}).map((entry) => entry.map(presentable)));
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.shouldRetry = options.shouldRetry ?? ERRORS[reason].shouldRetry;
  }

  static ofField(field: string, description: string): DomainError {
    return new DomainError("invalid_argument", {
      message: `${field}: ${description}`,
      fields: [{ field, description }],
    });
  }
}

/** Whether the server refused what the caller sent, and did not fail. */
export function isRefusal(error: unknown): error is DomainError {
  return error instanceof DomainError && ERRORS[error.reason].status < 500;
}

/** A text of an error, which may repeat a part of the request. gRPC cannot send half of a surrogate pair. */
function presentable(text: string): string {
  return redactKeys(text).toWellFormed();
}

export function isReason(text: string): text is Reason {
  return Object.hasOwn(ERRORS, text);
}

function row(status: RetriedStatus, message: string, shouldRetry: boolean, code?: GrpcCode): Row;
function row(status: Exclude<ErrorStatus, RetriedStatus>, message: string, shouldRetry?: boolean, code?: GrpcCode): Row;
function row(status: ErrorStatus, message: string, shouldRetry?: boolean, code: GrpcCode = STATUSES[status][0]): Row {
  // Some SDKs retry a 401 or a 403 for minutes and show nothing meanwhile. It heals only when the caller changes something.
  const isRefused = status === 401 || status === 403;
  return { code, status, type: STATUSES[status][1], message, shouldRetry: isRefused ? false : shouldRetry };
}
