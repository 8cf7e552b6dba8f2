import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "../../../gen/google/rpc/error_details_pb.js";
import { RequestProblem } from "../../codec/problem.ts";
import { redactKeys } from "../../domain/credentials.ts";
import { DomainError, ERRORS, type GrpcCode, type Reason } from "../../domain/errors.ts";

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
  const known = ensureDomainError(error);
  return new ConnectError(known.message, CODES[ERRORS[known.reason].code], undefined, errorDetails(known) as never, error);
}

/** Removes keys from an error of Connect itself, whose text may repeat caller input. */
function withoutKeys(error: ConnectError): ConnectError {
  const text = redactKeys(error.rawMessage);
  if (text === error.rawMessage) return error;
  const clean = new ConnectError(text, error.code, error.metadata, undefined, error);
  clean.details = error.details;
  return clean;
}

export function ensureDomainError(error: unknown): DomainError {
  return error instanceof DomainError ? error : new DomainError("internal", { cause: error });
}

const PROBLEM_REASONS = {
  invalid: "invalid_argument",
  not_found: "not_found",
  method_not_allowed: "method_not_allowed",
  unsupported_media_type: "unsupported_media_type",
  too_large: "request_too_large",
} as const;

/** Converts any thrown value to a DomainError. */
export function fromRequestError(error: unknown): DomainError {
  if (!(error instanceof RequestProblem)) return ensureDomainError(error);
  if (error.field !== "") return DomainError.ofField(error.field, error.message);
  return new DomainError(PROBLEM_REASONS[error.kind], { message: error.message });
}

/** A detail message with its schema, ready for any protocol. */
type ErrorDetail = { readonly desc: DescMessage; readonly value: ReturnType<typeof create> };

const QUOTAS: Partial<Record<Reason, string>> = {
  rate_limit_exceeded: "requests per minute",
  key_limit_reached: "active keys",
  webhook_limit_reached: "webhooks",
  key_creation_limit_reached: "keys created per hour",
};

/** The google.rpc details of an error: ErrorInfo always, the others if they apply. */
export function errorDetails(error: DomainError): ErrorDetail[] {
  const details = [detail(ErrorInfoSchema, { reason: error.reason.toUpperCase(), domain: "vx", metadata: error.metadata })];
  if (error.fields.length > 0) {
    details.push(detail(BadRequestSchema, { fieldViolations: [...error.fields] }));
  }
  if (error.reason === "insufficient_balance" || error.reason === "payment_reversed") {
    const violations = [{ type: "BALANCE", subject: "account", description: error.message }];
    details.push(detail(PreconditionFailureSchema, { violations }));
  }
  const { limit_id: limitId } = error.metadata;
  const subject = limitId === undefined ? QUOTAS[error.reason] : `limit:${limitId}`;
  if (subject !== undefined) {
    details.push(detail(QuotaFailureSchema, { violations: [{ subject, description: error.message }] }));
  }
  if (error.retryAfterSeconds !== undefined) {
    details.push(detail(RetryInfoSchema, { retryDelay: durationFromMs(error.retryAfterSeconds * 1000) }));
  }
  return details;
}

function detail<Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): ErrorDetail {
  return { desc, value: create(desc, init) };
}
