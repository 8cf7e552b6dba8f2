import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "../../../gen/google/rpc/error_details_pb.js";
import type { DomainError, Reason } from "../../domain/errors.ts";

/** A detail message with its schema, ready for any protocol. */
type ErrorDetail = { readonly desc: DescMessage; readonly value: ReturnType<typeof create> };

/** The quota that each reason reports as exceeded. */
const QUOTAS: Partial<Record<Reason, string>> = {
  rate_limit_exceeded: "requests per minute",
  key_limit_reached: "active keys",
  key_creation_limit_reached: "keys created per hour",
};

/** The google.rpc details of an error: ErrorInfo always, the others if they apply. */
export function errorDetails(error: DomainError): ErrorDetail[] {
  const details = [
    detail(ErrorInfoSchema, { reason: error.reason.toUpperCase(), domain: "vx", metadata: error.metadata }),
  ];
  if (error.fields.length > 0) {
    details.push(detail(BadRequestSchema, { fieldViolations: [...error.fields] }));
  }
  if (error.reason === "insufficient_balance") {
    const violations = [{ type: "BALANCE", subject: "account", description: error.message }];
    details.push(detail(PreconditionFailureSchema, { violations }));
  }
  const subject = QUOTAS[error.reason];
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
