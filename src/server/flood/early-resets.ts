/** Beyond this number, the address whose last reset is the oldest is removed. */
const MAX_ADDRESSES = 10_000;
const MAX_WAIT_MS = 10_000;

type EarlyResetLimits = { readonly http2EarlyResetBurst: number; readonly http2EarlyResetsPerSecond: number };

/**
 * Counts, per remote address, the HTTP/2 streams that are reset in the packet that opens them. They cost their caller
 * nothing, and V8 frees what Node keeps of each only when it collects the whole heap, in one pause. A session is closed
 * after a burst of them, so a flood opens many sessions. Above the limits, a session that sends one more is closed, and new
 * sessions of the address wait.
 */
export class EarlyResets {
  readonly #msPerReset: number;
  readonly #burstMs: number;
  readonly #now: () => number;
  /** When the allowance of an address, without its burst, covers all of its resets. */
  readonly #coveredAtMs = new Map<string, number>();

  constructor(limits: EarlyResetLimits, now: () => number) {
    this.#msPerReset = 1_000 / limits.http2EarlyResetsPerSecond;
    this.#burstMs = limits.http2EarlyResetBurst * this.#msPerReset;
    this.#now = now;
  }

  add(address: string): void {
    const nowMs = this.#now();
    const coveredAtMs = Math.max(this.#coveredAtMs.get(address) ?? nowMs, nowMs) + this.#msPerReset;
    this.#coveredAtMs.delete(address);
    this.#coveredAtMs.set(address, Math.min(coveredAtMs, nowMs + this.#burstMs + MAX_WAIT_MS));
    if (this.#coveredAtMs.size <= MAX_ADDRESSES) return;
    for (const oldest of this.#coveredAtMs.keys()) {
      this.#coveredAtMs.delete(oldest);
      break;
    }
  }

  /** Milliseconds until a session of the address may start; 0 if it may start now. */
  waitMs(address: string): number {
    const coveredAtMs = this.#coveredAtMs.get(address);
    return coveredAtMs === undefined ? 0 : Math.max(coveredAtMs - this.#burstMs - this.#now(), 0);
  }
}
