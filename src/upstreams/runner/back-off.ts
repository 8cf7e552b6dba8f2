import type { UpstreamFailure } from "./failure.ts";

export type BackOffOptions = {
  /** How often one upstream is asked for one call. */
  readonly triesMax: number;
  readonly firstMs: number;
  readonly longestMs: number;
  /** An upstream that wants to be left alone for longer is not asked again for this call. */
  readonly retryAfterMsMax: number;
};

/** How long to wait before the same upstream is asked again; undefined if it is not. */
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
