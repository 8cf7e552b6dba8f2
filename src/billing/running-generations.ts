import { DomainError } from "../domain/errors.ts";
import { FairShare } from "../domain/fair-share.ts";
import { SlotArray } from "../domain/slot-array.ts";
import type { Generation } from "./generation.ts";

/** The generations of this server that run or are being settled. */
export class RunningGenerations {
  readonly #max: number;
  readonly #generations = new SlotArray<Generation>();
  readonly #idleListeners = new Set<() => void>();
  /** Slots per account, so that no account can use all of them. */
  readonly #slots = new FairShare();
  #isStopped = false;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#slots.inUse;
  }

  /** Takes a slot for a generation before its hold is placed; throws overloaded if there is none. */
  reserve(accountId: string): void {
    if (this.#isStopped) throw new DomainError("unavailable");
    if (!this.#slots.acquire(accountId, 1, this.#max)) throw new DomainError("overloaded");
  }

  release(accountId: string | undefined): void {
    this.#slots.release(accountId, 1);
    if (this.count > 0) return;
    for (const resolve of this.#idleListeners) resolve();
    this.#idleListeners.clear();
  }

  /** Returns the number to pass to `unregister` after settlement. */
  register(generation: Generation): number {
    const slot = this.#generations.insert(generation);
    // The server was stopped while the hold was being placed.
    if (this.#isStopped) generation.stop("unavailable");
    return slot;
  }

  unregister(slot: number): void {
    this.#generations.remove(slot);
  }

  /** Whether any registered generation is of such an account. */
  hasAny(matches: (accountId: string) => boolean): boolean {
    for (const { spec } of this.#generations) if (matches(spec.key.accountId)) return true;
    return false;
  }

  /** Stops the streams of revoked keys. Unary calls run to their end. */
  stopStreams(keyIds: ReadonlySet<string>): void {
    for (const generation of this.#generations) {
      const { prompt, key } = generation.spec;
      if (prompt.streamed && keyIds.has(key.keyId)) generation.stop("revoked_api_key");
    }
  }

  /** Delays the end of the server until the work has ended. Its errors are handled elsewhere. */
  waitFor(work: Promise<unknown>): void {
    this.#slots.acquire(undefined, 1, Number.POSITIVE_INFINITY);
    work.catch(() => undefined).finally(() => this.release(undefined));
  }

  /** Stops all running generations and refuses new ones. */
  stopAll(): void {
    this.#isStopped = true;
    for (const generation of this.#generations) generation.stop("unavailable");
  }

  /** Resolves when all generations have ended and are settled. */
  whenIdle(): Promise<void> {
    if (this.count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleListeners.add(resolve));
  }
}
