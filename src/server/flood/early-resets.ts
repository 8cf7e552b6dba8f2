/** Beyond this number, the address whose last reset is the oldest is forgotten. */
const MAX_ADDRESSES = 10_000;
const MAX_WAIT_MS = 10_000;

type EarlyResetLimits = { readonly http2EarlyResetBurst: number; readonly http2EarlyResetsPerSecond: number };

/**
 * Counts the HTTP/2 streams that are reset by the packet that opens them, per remote address. They cost their caller
 * nothing, and V8 frees what Node keeps of each only when it collects the whole heap, in one pause. A session is closed
 * after a burst of them, so a flood opens one session after another; above the limits, those of its address have to wait.
 */
export class EarlyResets {
  readonly #msPerReset: number;
  readonly #burstMs: number;
  readonly #now: () => number;
  /** When an address has paid for all of its resets, at the allowed rate. */
  readonly #paidAtMs = new Map<string, number>();

  constructor(limits: EarlyResetLimits, now: () => number) {
    this.#msPerReset = 1_000 / limits.http2EarlyResetsPerSecond;
    this.#burstMs = limits.http2EarlyResetBurst * this.#msPerReset;
    this.#now = now;
  }

  add(address: string): void {
    const nowMs = this.#now();
    const paidAtMs = Math.max(this.#paidAtMs.get(address) ?? nowMs, nowMs) + this.#msPerReset;
    this.#paidAtMs.delete(address);
    this.#paidAtMs.set(address, Math.min(paidAtMs, nowMs + this.#burstMs + MAX_WAIT_MS));
    if (this.#paidAtMs.size <= MAX_ADDRESSES) return;
    for (const oldest of this.#paidAtMs.keys()) {
      this.#paidAtMs.delete(oldest);
      break;
    }
  }

  /** Milliseconds until a session of the address may start; 0 if it may start now. */
  waitMs(address: string): number {
    const paidAtMs = this.#paidAtMs.get(address);
    return paidAtMs === undefined ? 0 : Math.max(paidAtMs - this.#burstMs - this.#now(), 0);
  }
}
