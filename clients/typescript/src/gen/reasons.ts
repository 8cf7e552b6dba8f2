// Written by tools/write-client-tables.ts.
import {
  AuthenticationError,
  BillingError,
  InvalidRequestError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
} from "../errors.ts";

/** 400: The request is not valid. */
export class InvalidArgumentError extends InvalidRequestError {
  override readonly name: string = "InvalidArgumentError";
  override readonly reason = "invalid_argument";
}

/** 400: The messages exceed the context window of the model. Shorten them or use another model. */
export class ContextLengthExceededError extends InvalidRequestError {
  override readonly name: string = "ContextLengthExceededError";
  override readonly reason = "context_length_exceeded";
}

/** 400: Stored threads are not supported. Leave out 'thread' and send the whole conversation. */
export class ThreadUnsupportedRequestError extends InvalidRequestError {
  override readonly name: string = "ThreadUnsupportedRequestError";
  override readonly reason = "thread_unsupported_request";
}

/** 400: The value of max_cost_micros does not cover the input and one token of output. Raise it or shorten the messages. */
export class MaxCostTooLowError extends InvalidRequestError {
  override readonly name: string = "MaxCostTooLowError";
  override readonly reason = "max_cost_too_low";
}

/** 401: No API key was sent. Send it in the header 'Authorization: Bearer <API_KEY>'. */
export class MissingApiKeyError extends AuthenticationError {
  override readonly name: string = "MissingApiKeyError";
  override readonly reason = "missing_api_key";
}

/** 401: The API key is not valid. Check that it is complete. */
export class InvalidApiKeyError extends AuthenticationError {
  override readonly name: string = "InvalidApiKeyError";
  override readonly reason = "invalid_api_key";
}

/** 401: The API key was revoked. Use another key. */
export class RevokedApiKeyError extends AuthenticationError {
  override readonly name: string = "RevokedApiKeyError";
  override readonly reason = "revoked_api_key";
}

/** 401: The API key has expired. Use another key. */
export class ExpiredApiKeyError extends AuthenticationError {
  override readonly name: string = "ExpiredApiKeyError";
  override readonly reason = "expired_api_key";
}

/** 401: The session has expired or was ended. Sign in again. */
export class InvalidSessionError extends AuthenticationError {
  override readonly name: string = "InvalidSessionError";
  override readonly reason = "invalid_session";
}

/** 402: The balance is too low for this call. Add credit to the account. */
export class InsufficientBalanceError extends BillingError {
  override readonly name: string = "InsufficientBalanceError";
  override readonly reason = "insufficient_balance";
}

/** 402: A payment into the account was refunded or disputed after it was spent. Top up the account. */
export class PaymentReversedError extends BillingError {
  override readonly name: string = "PaymentReversedError";
  override readonly reason = "payment_reversed";
}

/** 402: A limit of cost does not cover this call. Raise the limit or wait for its next window. */
export class BudgetExceededError extends BillingError {
  override readonly name: string = "BudgetExceededError";
  override readonly reason = "budget_exceeded";
}

/** 403: The API key does not have the scope that this method requires. */
export class InsufficientScopeError extends PermissionDeniedError {
  override readonly name: string = "InsufficientScopeError";
  override readonly reason = "insufficient_scope";
}

/** 403: The API key cannot use this model. GET /v1/models lists the models that it can use. */
export class ModelNotAllowedError extends PermissionDeniedError {
  override readonly name: string = "ModelNotAllowedError";
  override readonly reason = "model_not_allowed";
}

/** 403: The API key cannot be used from this address. */
export class AddressNotAllowedError extends PermissionDeniedError {
  override readonly name: string = "AddressNotAllowedError";
  override readonly reason = "address_not_allowed";
}

/** 403: The account is suspended. Contact the operator of this service. */
export class AccountSuspendedError extends PermissionDeniedError {
  override readonly name: string = "AccountSuspendedError";
  override readonly reason = "account_suspended";
}

/** 403: This server creates no account for this person. Contact the operator of this service. */
export class SignUpRefusedError extends PermissionDeniedError {
  override readonly name: string = "SignUpRefusedError";
  override readonly reason = "sign_up_refused";
}

/** 403: The invitation was used, has expired, was deleted, or is for another e-mail address. Ask for a new one. */
export class InvalidInvitationError extends PermissionDeniedError {
  override readonly name: string = "InvalidInvitationError";
  override readonly reason = "invalid_invitation";
}

/** 404: The resource does not exist. Check the path. */
export class NotFoundError extends InvalidRequestError {
  override readonly name: string = "NotFoundError";
  override readonly reason = "not_found";
}

/** 404: The model does not exist. List the models with GET /v1/models. */
export class ModelNotFoundError extends InvalidRequestError {
  override readonly name: string = "ModelNotFoundError";
  override readonly reason = "model_not_found";
}

/** 405: This path does not support this HTTP method. */
export class MethodNotAllowedError extends InvalidRequestError {
  override readonly name: string = "MethodNotAllowedError";
  override readonly reason = "method_not_allowed";
}

/** 410: The event that 'after' names is older than the kept events. Leave out 'after' to start with the oldest one. */
export class CursorExpiredError extends InvalidRequestError {
  override readonly name: string = "CursorExpiredError";
  override readonly reason = "cursor_expired";
}

/** 409: The maximum number of webhooks exists. Delete a webhook that is not used. */
export class WebhookLimitReachedError extends InvalidRequestError {
  override readonly name: string = "WebhookLimitReachedError";
  override readonly reason = "webhook_limit_reached";
}

/** 409: The maximum number of members or invitations exists. */
export class MemberLimitReachedError extends InvalidRequestError {
  override readonly name: string = "MemberLimitReachedError";
  override readonly reason = "member_limit_reached";
}

/** 409: The account has no other owner. Make another member an owner first. */
export class LastOwnerError extends InvalidRequestError {
  override readonly name: string = "LastOwnerError";
  override readonly reason = "last_owner";
}

/** 409: The webhook is disabled and receives nothing. Enable it first. */
export class WebhookDisabledError extends InvalidRequestError {
  override readonly name: string = "WebhookDisabledError";
  override readonly reason = "webhook_disabled";
}

/** 409: The account has the maximum number of active keys of the plan. Revoke an unused key. */
export class KeyLimitReachedError extends InvalidRequestError {
  override readonly name: string = "KeyLimitReachedError";
  override readonly reason = "key_limit_reached";
}

/** 409: A call with this idempotency key is still running. Retry after it ends. */
export class IdempotencyInProgressError extends InvalidRequestError {
  override readonly name: string = "IdempotencyInProgressError";
  override readonly reason = "idempotency_in_progress";
}

/** 409: The response of the first call with this idempotency key was interrupted. To generate again, send a new idempotency key. */
export class GenerationInterruptedError extends InvalidRequestError {
  override readonly name: string = "GenerationInterruptedError";
  override readonly reason = "generation_interrupted";
}

/** 413: The request body is too large. Send less data. */
export class RequestTooLargeError extends InvalidRequestError {
  override readonly name: string = "RequestTooLargeError";
  override readonly reason = "request_too_large";
}

/** 415: The content type is not supported. Send application/json. */
export class UnsupportedMediaTypeError extends InvalidRequestError {
  override readonly name: string = "UnsupportedMediaTypeError";
  override readonly reason = "unsupported_media_type";
}

/** 422: The idempotency key was used with another request. Send a new idempotency key. */
export class IdempotencyKeyReusedError extends InvalidRequestError {
  override readonly name: string = "IdempotencyKeyReusedError";
  override readonly reason = "idempotency_key_reused";
}

/** 429: The requests per minute of the key are used up. Retry in the next minute. */
export class RateLimitExceededError extends RateLimitError {
  override readonly name: string = "RateLimitExceededError";
  override readonly reason = "rate_limit_exceeded";
}

/** 429: The account created the maximum number of keys per hour of the plan. Retry in the next hour. */
export class KeyCreationLimitReachedError extends RateLimitError {
  override readonly name: string = "KeyCreationLimitReachedError";
  override readonly reason = "key_creation_limit_reached";
}

/** 429: A limit of tokens does not cover this call. Lower max_tokens or wait for the next window of the limit. */
export class TokenLimitExceededError extends RateLimitError {
  override readonly name: string = "TokenLimitExceededError";
  override readonly reason = "token_limit_exceeded";
}

/** 429: A limit of generations is used up. Wait for its next window. */
export class GenerationLimitExceededError extends RateLimitError {
  override readonly name: string = "GenerationLimitExceededError";
  override readonly reason = "generation_limit_exceeded";
}

/** 429: The maximum number of running generations is reached. Retry when one has ended. */
export class ConcurrencyLimitReachedError extends RateLimitError {
  override readonly name: string = "ConcurrencyLimitReachedError";
  override readonly reason = "concurrency_limit_reached";
}

/** 429: The account has 20 top-ups that are not paid. Pay one of them, or retry when one has expired, a day after its creation. */
export class TopupLimitReachedError extends RateLimitError {
  override readonly name: string = "TopupLimitReachedError";
  override readonly reason = "topup_limit_reached";
}

/** 429: Too many calls with unknown, revoked or expired keys came from this IP address. Retry in the next minute. */
export class TooManyFailedAuthenticationsError extends RateLimitError {
  override readonly name: string = "TooManyFailedAuthenticationsError";
  override readonly reason = "too_many_failed_authentications";
}

/** 400: The message is flagged as compressed, but the call does not declare a compression. Declare it in the header 'grpc-encoding' or 'connect-content-encoding', or do not compress the message. */
export class UnexpectedCompressionError extends InvalidRequestError {
  override readonly name: string = "UnexpectedCompressionError";
  override readonly reason = "unexpected_compression";
}

/** 500: An internal error occurred. Report it with the request id. */
export class InternalError extends ServerError {
  override readonly name: string = "InternalError";
  override readonly reason = "internal";
}

/** 501: This server takes no payments. Contact the operator of this service to add credit. */
export class PaymentsNotConfiguredError extends ServerError {
  override readonly name: string = "PaymentsNotConfiguredError";
  override readonly reason = "payments_not_configured";
}

/** 501: This method is not available yet. */
export class UnimplementedError extends ServerError {
  override readonly name: string = "UnimplementedError";
  override readonly reason = "unimplemented";
}

/** 502: The upstream of the model failed or is not reachable. Retry later. */
export class UpstreamError extends ServerError {
  override readonly name: string = "UpstreamError";
  override readonly reason = "upstream_error";
}

/** 503: The service is temporarily unavailable. Retry later. */
export class UnavailableError extends ServerError {
  override readonly name: string = "UnavailableError";
  override readonly reason = "unavailable";
}

/** 503: The service is overloaded. Retry later. */
export class OverloadedError extends ServerError {
  override readonly name: string = "OverloadedError";
  override readonly reason = "overloaded";
}

/** 504: The deadline of the call passed before the reply was complete. */
export class DeadlineExceededError extends ServerError {
  override readonly name: string = "DeadlineExceededError";
  override readonly reason = "deadline_exceeded";
}

/** The class of each reason. */
export const CLASSES = {
  invalid_argument: InvalidArgumentError,
  context_length_exceeded: ContextLengthExceededError,
  thread_unsupported_request: ThreadUnsupportedRequestError,
  max_cost_too_low: MaxCostTooLowError,
  missing_api_key: MissingApiKeyError,
  invalid_api_key: InvalidApiKeyError,
  revoked_api_key: RevokedApiKeyError,
  expired_api_key: ExpiredApiKeyError,
  invalid_session: InvalidSessionError,
  insufficient_balance: InsufficientBalanceError,
  payment_reversed: PaymentReversedError,
  budget_exceeded: BudgetExceededError,
  insufficient_scope: InsufficientScopeError,
  model_not_allowed: ModelNotAllowedError,
  address_not_allowed: AddressNotAllowedError,
  account_suspended: AccountSuspendedError,
  sign_up_refused: SignUpRefusedError,
  invalid_invitation: InvalidInvitationError,
  not_found: NotFoundError,
  model_not_found: ModelNotFoundError,
  method_not_allowed: MethodNotAllowedError,
  cursor_expired: CursorExpiredError,
  webhook_limit_reached: WebhookLimitReachedError,
  member_limit_reached: MemberLimitReachedError,
  last_owner: LastOwnerError,
  webhook_disabled: WebhookDisabledError,
  key_limit_reached: KeyLimitReachedError,
  idempotency_in_progress: IdempotencyInProgressError,
  generation_interrupted: GenerationInterruptedError,
  request_too_large: RequestTooLargeError,
  unsupported_media_type: UnsupportedMediaTypeError,
  idempotency_key_reused: IdempotencyKeyReusedError,
  rate_limit_exceeded: RateLimitExceededError,
  key_creation_limit_reached: KeyCreationLimitReachedError,
  token_limit_exceeded: TokenLimitExceededError,
  generation_limit_exceeded: GenerationLimitExceededError,
  concurrency_limit_reached: ConcurrencyLimitReachedError,
  topup_limit_reached: TopupLimitReachedError,
  too_many_failed_authentications: TooManyFailedAuthenticationsError,
  unexpected_compression: UnexpectedCompressionError,
  internal: InternalError,
  payments_not_configured: PaymentsNotConfiguredError,
  unimplemented: UnimplementedError,
  upstream_error: UpstreamError,
  unavailable: UnavailableError,
  overloaded: OverloadedError,
  deadline_exceeded: DeadlineExceededError,
} as const;

/** The reasons for which the same call can succeed later. */
export const RETRIED: ReadonlySet<string> = /*@__PURE__*/ new Set([
  "idempotency_in_progress",
  "rate_limit_exceeded",
  "concurrency_limit_reached",
  "too_many_failed_authentications",
  "internal",
  "upstream_error",
  "unavailable",
  "overloaded",
]);
