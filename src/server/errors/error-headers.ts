import { type DomainError, ERRORS } from "../../domain/errors.ts";

/** The headers of an error: how to authenticate, when to retry, and whether to. */
export function errorHeaders({ reason, retryAfterSeconds }: DomainError): readonly [string, string][] {
  const { status, shouldRetry } = ERRORS[reason];
  const headers: [string, string][] = [];
  if (status === 401) headers.push(["www-authenticate", "Bearer"]);
  if (retryAfterSeconds !== undefined) headers.push(["retry-after", String(retryAfterSeconds)]);
  if (shouldRetry !== undefined) headers.push(["x-should-retry", String(shouldRetry)]);
  return headers;
}
