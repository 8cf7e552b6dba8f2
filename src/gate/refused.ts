import { DomainError, ERRORS } from "../domain/errors.ts";
import type { Call } from "./call.ts";

/** Adds to the response what every 401 and every 429 carries in a header. */
export function refused(call: Call, error: unknown): unknown {
  if (!(error instanceof DomainError)) return error;
  const { status } = ERRORS[error.reason];
  if (status === 401) call.setResponseHeader("www-authenticate", "Bearer");
  if (status === 429 && error.retryAfterSeconds !== undefined) {
    call.setResponseHeader("retry-after", String(error.retryAfterSeconds));
  }
  return error;
}
