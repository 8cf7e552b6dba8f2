import { RestProblem } from "../../codec/problem.ts";
import { DomainError } from "../../domain/errors.ts";
import { asDomainError } from "./connect-error.ts";

const PROBLEM_REASONS = {
  invalid: "invalid_argument",
  not_found: "not_found",
  method_not_allowed: "method_not_allowed",
  unsupported_media_type: "unsupported_media_type",
  too_large: "request_too_large",
} as const;

/** Converts any thrown value to a DomainError. */
export function toKnownError(error: unknown): DomainError {
  if (!(error instanceof RestProblem)) return asDomainError(error);
  if (error.field !== "") return DomainError.ofField(error.field, error.message);
  return new DomainError(PROBLEM_REASONS[error.kind], { message: error.message });
}
