import { ConnectError, type CallOptions as ConnectOptions } from "@connectrpc/connect";
import { AbortError, ConnectionError, TimeoutError, type VxError } from "./errors.ts";
import { RETRIED } from "./gen/reasons.ts";
import { givenIdempotencyKey, newIdempotencyKey } from "./idempotency-key.ts";
import { toVxError } from "./to-vx-error.ts";

/** What a caller can set for one call. */
export type CallOptions = {
  /** Ends the call. */
  readonly signal?: AbortSignal | undefined;
  /** The time limit of the call with all its retries, in milliseconds. 0 for none. */
  readonly timeoutMs?: number | undefined;
  /** How often the call is repeated after an error that a retry can heal. */
  readonly maxRetries?: number | undefined;
  /**
   * The key of the call, at most 255 characters. Default: a new one for each call, and none for streams. With a key, a
   * generation continues when its caller leaves, and is charged in full; the same call with the same key returns it.
   */
  readonly idempotencyKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Gets the headers of the response, such as `x-request-id`, `ratelimit` and `idempotency-replayed`. */
  readonly onHeader?: ((headers: Headers) => void) | undefined;
};

export type CallDefaults = { readonly timeoutMs: number; readonly maxRetries: number };

/**
 * What a repetition can do: "read" changes nothing; "keyed" is charged once because it has an idempotency key; "unkeyed" is
 * charged unless the server says why it failed; "write" could change something twice.
 */
export type Effect = "read" | "keyed" | "unkeyed" | "write";

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 8_000;
/** A rate limit is at most a minute away; callers decide about longer waits. */
const MAX_RETRY_AFTER_SECONDS = 60;

/** Makes attempts until one succeeds, an error is final, or the retries or the time are used up. */
export async function withRetries<Result>(
  effect: Effect,
  options: CallOptions,
  defaults: CallDefaults,
  attempt: (options: ConnectOptions) => Promise<Result>,
): Promise<Result> {
  const timeoutMs = options.timeoutMs ?? defaults.timeoutMs;
  const maxRetries = options.maxRetries ?? defaults.maxRetries;
  const endsAt = timeoutMs > 0 ? Date.now() + timeoutMs : Number.POSITIVE_INFINITY;
  const headers = new Headers(options.headers);
  const idempotencyKey = effect === "keyed" ? (givenIdempotencyKey(options) ?? newIdempotencyKey()) : undefined;
  if (idempotencyKey !== undefined) headers.set("idempotency-key", idempotencyKey);
  else headers.delete("idempotency-key");
  for (let retries = 0; ; retries++) {
    const remainingMs = endsAt - Date.now();
    try {
      return await attempt({
        headers,
        ...(options.signal && { signal: options.signal }),
        ...(options.onHeader && { onHeader: options.onHeader }),
        ...(timeoutMs > 0 && { timeoutMs: Math.max(1, Math.ceil(remainingMs)) }),
      });
    } catch (thrown) {
      const error = toVxError(thrown, idempotencyKey);
      const delayMs = delayOf(error, retries);
      const isFinal = retries >= maxRetries || !isRetried(error, effect) || Date.now() + delayMs >= endsAt;
      if (isFinal) throw error;
      await delay(delayMs, options.signal, idempotencyKey);
    }
  }
}

export function isRetried(error: VxError, effect: Effect): boolean {
  if (error instanceof AbortError || error instanceof TimeoutError) return false;
  if ((error.retryAfterSeconds ?? 0) > MAX_RETRY_AFTER_SECONDS) return false;
  // A refusal before the call ran; after any other error, the call may have had its effect.
  const hasNotRun = error.code === "resource_exhausted" || error.reason === "overloaded";
  if (effect === "write" && !hasNotRun) return false;
  if (effect === "unkeyed" && error.reason === undefined) return false;
  const advice = error.headers.get("x-should-retry");
  if (advice !== null) return advice === "true";
  if (error instanceof ConnectionError) return true;
  return error.reason === undefined ? error.code === "unavailable" : RETRIED.has(error.reason);
}

/** As the server says, else twice as long as before, and never the same for callers that failed together. */
export function delayOf(error: VxError, retries: number): number {
  const spread = 0.5 + Math.random() / 2;
  if (error.retryAfterSeconds !== undefined) return error.retryAfterSeconds * 1000 + spread * 100;
  return Math.min(FIRST_DELAY_MS * 2 ** retries, MAX_DELAY_MS) * spread;
}

export function delay(ms: number, signal: AbortSignal | undefined, idempotencyKey: string | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(toVxError(ConnectError.from(signal?.reason ?? new DOMException("aborted", "AbortError")), idempotencyKey));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
