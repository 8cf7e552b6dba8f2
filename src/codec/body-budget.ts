import { DomainError } from "../domain/errors.ts";
import { FairShare, Rotation } from "../domain/fairness.ts";

/** A request up to this size may use the part that is reserved for small requests. */
const SMALL_BYTES = 65_536;

/** One account may use half of what the others leave: the largest request of another account fits beside it. */
const MAX_SHARE = 1 / 2;

type BodyBudgetOptions = {
  /** Limit for all requests in memory: their bodies while they are read, their messages until their calls have ended. */
  readonly maxBytes: number;
  /** The part that only small requests may use: small calls succeed however many large ones arrive. */
  readonly smallBytes: number;
  /** From the start of reading a body to its end. */
  readonly bodyMs: number;
};

/** The memory of one process for the requests of its callers, in every protocol. */
export class BodyBudget {
  readonly bodyMs: number;
  readonly #maxBytes: number;
  readonly #maxLargeBytes: number;
  readonly #room = new FairShare(MAX_SHARE);
  readonly #waiting = new Rotation<() => void>();
  #peakBytes = 0;
  #isParsing = false;

  constructor({ maxBytes, smallBytes, bodyMs }: BodyBudgetOptions) {
    this.bodyMs = bodyMs;
    this.#maxBytes = maxBytes;
    this.#maxLargeBytes = maxBytes - smallBytes;
  }

  get usedBytes(): number {
    return this.#room.inUse;
  }

  /** The most bytes in memory at once since the last call of this method. */
  takePeakBytes(): number {
    const peak = this.#peakBytes;
    this.#peakBytes = this.usedBytes;
    return peak;
  }

  openShare(accountId: string | undefined): BodyShare {
    return new BodyShare(this, accountId);
  }

  /** Acquires more bytes for a request that then has `total` of them. Only small requests may use the whole budget. */
  acquire(accountId: string | undefined, bytes: number, total: number): boolean {
    const limit = total <= SMALL_BYTES ? this.#maxBytes : this.#maxLargeBytes;
    if (!this.#room.acquire(accountId, bytes, limit)) return false;
    this.#peakBytes = Math.max(this.#peakBytes, this.usedBytes);
    return true;
  }

  release(accountId: string | undefined, bytes: number): void {
    this.#room.release(accountId, bytes);
  }

  /** Parses large bodies one at a time, because that takes several times their size; accounts take turns. */
  async inTurn<Result>(accountId: string | undefined, parse: () => Promise<Result>): Promise<Result> {
    if (this.#isParsing) await new Promise<void>((resolve) => this.#waiting.add(accountId, resolve));
    this.#isParsing = true;
    try {
      return await parse();
    } finally {
      const next = this.#waiting.take();
      if (next) next();
      else this.#isParsing = false;
    }
  }
}

/** The part of the budget that one request uses, until its call and its generation have ended. */
export class BodyShare {
  readonly #budget: BodyBudget;
  readonly #accountId: string | undefined;
  #bytes = 0;
  #holders = 1;

  constructor(budget: BodyBudget, accountId: string | undefined) {
    this.#budget = budget;
    this.#accountId = accountId;
  }

  /** From the start of reading the body to its end. */
  get bodyMs(): number {
    return this.#budget.bodyMs;
  }

  /** Throws "overloaded" if the budget has no room for more bytes. A body that is still being read after its call has ended is dropped. */
  reserve(bytes: number): void {
    if (this.#holders === 0) throw tooMuch();
    const total = this.#bytes + bytes;
    if (!this.#budget.acquire(this.#accountId, bytes, total)) throw tooMuch();
    this.#bytes = total;
  }

  /** Replaces all that was reserved before. */
  resize(bytes: number): void {
    const more = bytes - this.#bytes;
    if (more > 0) this.reserve(more);
    else this.#free(-more);
  }

  inTurn<Result>(parse: () => Promise<Result>): Promise<Result> {
    return this.#budget.inTurn(this.#accountId, parse);
  }

  /** The request stays in memory until `release` has been called once more. */
  retain(): void {
    this.#holders++;
  }

  release(): void {
    if (--this.#holders === 0) this.#free(this.#bytes);
  }

  #free(bytes: number): void {
    if (bytes === 0) return;
    this.#budget.release(this.#accountId, bytes);
    this.#bytes -= bytes;
  }
}

function tooMuch(): DomainError {
  return new DomainError("overloaded", {
    message: "The service has too many large requests in memory. Retry later.",
    retryAfterSeconds: 1,
  });
}
