import { type DomainError, ERRORS } from "../../domain/errors.ts";
import { RateLimitError, ScopeError, setRateHeaders } from "../gate/rate-window.ts";
import type { HeaderSink } from "../http.ts";

/** The headers of an error: how to authenticate, whether to retry, and when. */
export function setErrorHeaders(response: HeaderSink, error: DomainError): void {
  const { status, shouldRetry } = ERRORS[error.reason];
  if (error instanceof RateLimitError || error instanceof ScopeError) {
    if (error.window) setRateHeaders(response, error.window);
  }
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  if (error.retryAfterSeconds !== undefined)
    response.setHeader("retry-after", String(error.retryAfterSeconds));
  if (shouldRetry !== undefined) response.setHeader("x-should-retry", String(shouldRetry));
}
