# Written by tools/write-client-tables.ts.
"""One class for each reason of an error."""

from __future__ import annotations

from ._errors import (
    AuthenticationError,
    BillingError,
    InvalidRequestError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    VxError,
)


class InvalidArgumentError(InvalidRequestError):
    """400: The request is not valid."""

    reason = "invalid_argument"


class ContextLengthExceededError(InvalidRequestError):
    """400: The messages exceed the context window of the model. Shorten them or use another model."""

    reason = "context_length_exceeded"


class ThreadUnsupportedRequestError(InvalidRequestError):
    """400: Stored threads are not supported. Leave out 'thread' and send the whole conversation."""

    reason = "thread_unsupported_request"


class MaxCostTooLowError(InvalidRequestError):
    """400: The value of max_cost_micros does not cover the input and one token of output. Raise it or shorten the messages."""

    reason = "max_cost_too_low"


class MissingApiKeyError(AuthenticationError):
    """401: No API key was sent. Send it in the header 'Authorization: Bearer <API_KEY>'."""

    reason = "missing_api_key"


class InvalidApiKeyError(AuthenticationError):
    """401: The API key is not valid. Check that it is complete."""

    reason = "invalid_api_key"


class RevokedApiKeyError(AuthenticationError):
    """401: The API key was revoked. Use another key."""

    reason = "revoked_api_key"


class ExpiredApiKeyError(AuthenticationError):
    """401: The API key has expired. Use another key."""

    reason = "expired_api_key"


class InvalidSessionError(AuthenticationError):
    """401: The session has expired or was ended. Sign in again."""

    reason = "invalid_session"


class InsufficientBalanceError(BillingError):
    """402: The balance is too low for this call. Add credit to the account."""

    reason = "insufficient_balance"


class PaymentReversedError(BillingError):
    """402: A payment into the account was refunded or disputed after it was spent. Top up the account."""

    reason = "payment_reversed"


class BudgetExceededError(BillingError):
    """402: A limit of cost does not cover this call. Raise the limit or wait for its next window."""

    reason = "budget_exceeded"


class InsufficientScopeError(PermissionDeniedError):
    """403: The API key does not have the scope that this method requires."""

    reason = "insufficient_scope"


class ModelNotAllowedError(PermissionDeniedError):
    """403: The API key cannot use this model. GET /v1/models lists the models that it can use."""

    reason = "model_not_allowed"


class AddressNotAllowedError(PermissionDeniedError):
    """403: The API key cannot be used from this address."""

    reason = "address_not_allowed"


class AccountSuspendedError(PermissionDeniedError):
    """403: The account is suspended. Contact the operator of this service."""

    reason = "account_suspended"


class SignUpRefusedError(PermissionDeniedError):
    """403: This server creates no account for this person. Contact the operator of this service."""

    reason = "sign_up_refused"


class InvalidInvitationError(PermissionDeniedError):
    """403: The invitation was used, has expired, was deleted, or is for another e-mail address. Ask for a new one."""

    reason = "invalid_invitation"


class NotFoundError(InvalidRequestError):
    """404: The resource does not exist. Check the path."""

    reason = "not_found"


class ModelNotFoundError(InvalidRequestError):
    """404: The model does not exist. List the models with GET /v1/models."""

    reason = "model_not_found"


class MethodNotAllowedError(InvalidRequestError):
    """405: This path does not support this HTTP method."""

    reason = "method_not_allowed"


class CursorExpiredError(InvalidRequestError):
    """410: The event that 'after' names is older than the kept events. Leave out 'after' to start with the oldest one."""

    reason = "cursor_expired"


class WebhookLimitReachedError(InvalidRequestError):
    """409: The maximum number of webhooks exists. Delete a webhook that is not used."""

    reason = "webhook_limit_reached"


class MemberLimitReachedError(InvalidRequestError):
    """409: The maximum number of members or invitations exists."""

    reason = "member_limit_reached"


class LastOwnerError(InvalidRequestError):
    """409: The account has no other owner. Make another member an owner first."""

    reason = "last_owner"


class WebhookDisabledError(InvalidRequestError):
    """409: The webhook is disabled and receives nothing. Enable it first."""

    reason = "webhook_disabled"


class KeyLimitReachedError(InvalidRequestError):
    """409: The account has the maximum number of active keys of the plan. Revoke an unused key."""

    reason = "key_limit_reached"


class IdempotencyInProgressError(InvalidRequestError):
    """409: A call with this idempotency key is still running. Retry after it ends."""

    reason = "idempotency_in_progress"


class GenerationInterruptedError(InvalidRequestError):
    """409: The response of the first call with this idempotency key was interrupted. To generate again, send a new idempotency key."""

    reason = "generation_interrupted"


class RequestTooLargeError(InvalidRequestError):
    """413: The request body is too large. Send less data."""

    reason = "request_too_large"


class UnsupportedMediaTypeError(InvalidRequestError):
    """415: The content type is not supported. Send application/json."""

    reason = "unsupported_media_type"


class IdempotencyKeyReusedError(InvalidRequestError):
    """422: The idempotency key was used with another request. Send a new idempotency key."""

    reason = "idempotency_key_reused"


class RateLimitExceededError(RateLimitError):
    """429: The requests per minute of the key are used up. Retry in the next minute."""

    reason = "rate_limit_exceeded"


class KeyCreationLimitReachedError(RateLimitError):
    """429: The account created the maximum number of keys per hour of the plan. Retry in the next hour."""

    reason = "key_creation_limit_reached"


class TokenLimitExceededError(RateLimitError):
    """429: A limit of tokens does not cover this call. Lower max_tokens or wait for the next window of the limit."""

    reason = "token_limit_exceeded"


class GenerationLimitExceededError(RateLimitError):
    """429: A limit of generations is used up. Wait for its next window."""

    reason = "generation_limit_exceeded"


class ConcurrencyLimitReachedError(RateLimitError):
    """429: The maximum number of running generations is reached. Retry when one has ended."""

    reason = "concurrency_limit_reached"


class TopupLimitReachedError(RateLimitError):
    """429: The account has 20 top-ups that are not paid. Pay one of them, or retry when one has expired, a day after its creation."""

    reason = "topup_limit_reached"


class TooManyFailedAuthenticationsError(RateLimitError):
    """429: Too many calls with unknown, revoked or expired keys came from this IP address. Retry in the next minute."""

    reason = "too_many_failed_authentications"


class UnexpectedCompressionError(InvalidRequestError):
    """400: The message is flagged as compressed, but the call does not declare a compression. Declare it in the header 'grpc-encoding' or 'connect-content-encoding', or do not compress the message."""

    reason = "unexpected_compression"


class InternalError(ServerError):
    """500: An internal error occurred. Report it with the request id."""

    reason = "internal"


class PaymentsNotConfiguredError(ServerError):
    """501: This server takes no payments. Contact the operator of this service to add credit."""

    reason = "payments_not_configured"


class UnimplementedError(ServerError):
    """501: This method is not available yet."""

    reason = "unimplemented"


class UpstreamError(ServerError):
    """502: The upstream of the model failed or is not reachable. Retry later."""

    reason = "upstream_error"


class UnavailableError(ServerError):
    """503: The service is temporarily unavailable. Retry later."""

    reason = "unavailable"


class OverloadedError(ServerError):
    """503: The service is overloaded. Retry later."""

    reason = "overloaded"


class DeadlineExceededError(ServerError):
    """504: The deadline of the call passed before the reply was complete."""

    reason = "deadline_exceeded"


CLASSES: dict[str, type[VxError]] = {
    "invalid_argument": InvalidArgumentError,
    "context_length_exceeded": ContextLengthExceededError,
    "thread_unsupported_request": ThreadUnsupportedRequestError,
    "max_cost_too_low": MaxCostTooLowError,
    "missing_api_key": MissingApiKeyError,
    "invalid_api_key": InvalidApiKeyError,
    "revoked_api_key": RevokedApiKeyError,
    "expired_api_key": ExpiredApiKeyError,
    "invalid_session": InvalidSessionError,
    "insufficient_balance": InsufficientBalanceError,
    "payment_reversed": PaymentReversedError,
    "budget_exceeded": BudgetExceededError,
    "insufficient_scope": InsufficientScopeError,
    "model_not_allowed": ModelNotAllowedError,
    "address_not_allowed": AddressNotAllowedError,
    "account_suspended": AccountSuspendedError,
    "sign_up_refused": SignUpRefusedError,
    "invalid_invitation": InvalidInvitationError,
    "not_found": NotFoundError,
    "model_not_found": ModelNotFoundError,
    "method_not_allowed": MethodNotAllowedError,
    "cursor_expired": CursorExpiredError,
    "webhook_limit_reached": WebhookLimitReachedError,
    "member_limit_reached": MemberLimitReachedError,
    "last_owner": LastOwnerError,
    "webhook_disabled": WebhookDisabledError,
    "key_limit_reached": KeyLimitReachedError,
    "idempotency_in_progress": IdempotencyInProgressError,
    "generation_interrupted": GenerationInterruptedError,
    "request_too_large": RequestTooLargeError,
    "unsupported_media_type": UnsupportedMediaTypeError,
    "idempotency_key_reused": IdempotencyKeyReusedError,
    "rate_limit_exceeded": RateLimitExceededError,
    "key_creation_limit_reached": KeyCreationLimitReachedError,
    "token_limit_exceeded": TokenLimitExceededError,
    "generation_limit_exceeded": GenerationLimitExceededError,
    "concurrency_limit_reached": ConcurrencyLimitReachedError,
    "topup_limit_reached": TopupLimitReachedError,
    "too_many_failed_authentications": TooManyFailedAuthenticationsError,
    "unexpected_compression": UnexpectedCompressionError,
    "internal": InternalError,
    "payments_not_configured": PaymentsNotConfiguredError,
    "unimplemented": UnimplementedError,
    "upstream_error": UpstreamError,
    "unavailable": UnavailableError,
    "overloaded": OverloadedError,
    "deadline_exceeded": DeadlineExceededError,
}

#: The reasons for which the same call can succeed later.
RETRIED = frozenset(
    {
        "idempotency_in_progress",
        "rate_limit_exceeded",
        "concurrency_limit_reached",
        "too_many_failed_authentications",
        "internal",
        "upstream_error",
        "unavailable",
        "overloaded",
    }
)
