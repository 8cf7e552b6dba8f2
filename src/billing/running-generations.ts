import { DomainError } from "../domain/errors.ts";
import { FairShare } from "../domain/fair-share.ts";
import { SlotArray } from "../domain/slot-array.ts";
import type { Generation } from "./generation.ts";

/** The generations of this server that run or are being settled. */
export class RunningGenerations {
  readonly #max: number;
  readonly #generations = new SlotArray<Generation>();
  readonly #waiting = new Set<() => void>();
  /** Slots per account, so that no account can use all of them. */
  readonly #slots = new FairShare();
  #closed = false;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#slots.taken;
  }

  /** Takes a slot for a generation before its hold is placed; throws overloaded if there is none. */
  reserve(accountId: string): void {
    if (this.#closed) throw new DomainError("unavailable");
    if (!this.#slots.take(accountId, 1, this.#max)) throw new DomainError("overloaded");
  }

  release(accountId: string | undefined): void {
    this.#slots.release(accountId, 1);
    if (this.count > 0) return;
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** Returns the index of the generation, which is passed to `leave` after settlement. */
  enter(generation: Generation): number {
    const place = this.#generations.insert(generation);
    // The server was closed while the hold was being placed.
    if (this.#closed) generation.stop("unavailable");
    return place;
  }

  leave(place: number): void {
    this.#generations.remove(place);
  }

  /** Stops the streams of revoked keys. Unary calls run to their end. */
  cutStreams(keyIds: ReadonlySet<string>): void {
    for (const generation of this.#generations) {
      const { streamed, key } = generation.order;
      if (streamed && keyIds.has(key.keyId)) generation.stop("revoked_api_key");
    }
  }

  /** Delays the end of the server until the work has ended. Its errors are handled elsewhere. */
  during(work: Promise<unknown>): void {
    this.#slots.take(undefined, 1, Number.POSITIVE_INFINITY);
    work.catch(() => undefined).finally(() => this.release(undefined));
  }

  /** Stops all running generations and refuses new ones. */
  close(): void {
    this.#closed = true;
    for (const generation of this.#generations) generation.stop("unavailable");
  }

  /** Resolves when all generations have ended and are settled. */
  idle(): Promise<void> {
    if (this.count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.add(resolve));
  }
}
