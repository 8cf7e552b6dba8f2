import type { UpstreamFailure } from "../upstream-failure.ts";

export type BackOffOptions = {
  /** Maximum attempts per upstream and call. */
  readonly maxAttempts: number;
  readonly firstMs: number;
  readonly maxMs: number;
  /** A longer Retry-After ends the attempts at this upstream for this call. */
  readonly maxRetryAfterMs: number;
};

/** The wait before the next attempt at the same upstream; undefined if there is none. */
export function backOffMs(
  { maxAttempts, firstMs, maxMs, maxRetryAfterMs }: BackOffOptions,
  failure: UpstreamFailure,
  attempts: number,
  random: () => number,
): number | undefined {
  const { mayRetry, retryAfterMs = 0 } = failure;
  if (!mayRetry || attempts >= maxAttempts || retryAfterMs > maxRetryAfterMs) return undefined;
  const longestMs = Math.min(firstMs * 2 ** (attempts - 1), maxMs);
  return retryAfterMs + longestMs * (0.5 + random() / 2);
}
