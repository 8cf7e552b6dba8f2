import type { UpstreamFailure } from "./failure.ts";

export type BackOffOptions = {
  /** Maximum attempts per upstream and call. */
  readonly triesMax: number;
  readonly firstMs: number;
  readonly longestMs: number;
  /** A longer Retry-After ends the attempts at this upstream for this call. */
  readonly retryAfterMsMax: number;
};

/** The wait before the next attempt at the same upstream; undefined if there is none. */
export function backOffMs(
  options: BackOffOptions,
  failure: UpstreamFailure,
  tries: number,
  random: () => number,
): number | undefined {
  if (!failure.mayRetry || tries >= options.triesMax) return undefined;
  const wanted = failure.retryAfterMs ?? 0;
  if (wanted > options.retryAfterMsMax) return undefined;
  const longest = Math.min(options.firstMs * 2 ** (tries - 1), options.longestMs);
  return wanted + longest * (0.5 + random() / 2);
}
