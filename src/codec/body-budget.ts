import { DomainError } from "../domain/errors.ts";
import { FairShare } from "../domain/fair-share.ts";

/** A body up to this size may use the part that is reserved for small bodies. */
const SMALL_BYTES = 65_536;

type BodyBudgetOptions = {
  /** Limit for all bodies that are being read. */
  readonly maxBytes: number;
  /** The part that only small bodies may use: small calls succeed however many large ones arrive. */
  readonly smallBytes: number;
  /** From the start of reading a body to its end. */
  readonly bodyMs: number;
};

/** The memory of one process for bodies that are not decoded yet, in every protocol. */
export class BodyBudget {
  readonly #options: BodyBudgetOptions;
  readonly #room = new FairShare();
  #turn: Promise<void> = Promise.resolve();

  constructor(options: BodyBudgetOptions) {
    this.#options = options;
  }

  get bodyMs(): number {
    return this.#options.bodyMs;
  }

  /** Bytes of bodies in memory. */
  get usedBytes(): number {
    return this.#room.inUse;
  }

  /** Each sender has a share; only small bodies may use the whole budget. */
  openShare(sender: string | undefined): BodyShare {
    let mine = 0;
    return {
      reserve: (bytes) => {
        const { maxBytes, smallBytes } = this.#options;
        const limit = mine + bytes <= SMALL_BYTES ? maxBytes : maxBytes - smallBytes;
        if (!this.#room.acquire(sender, bytes, limit)) throw tooMuch();
        mine += bytes;
      },
      release: () => {
        this.#room.release(sender, mine);
        mine = 0;
      },
    };
  }

  /** Parses large bodies one at a time: parsing takes several times the size of the body. */
  async inTurn<Result>(parse: () => Promise<Result>): Promise<Result> {
    const before = this.#turn;
    const mine = Promise.withResolvers<void>();
    this.#turn = mine.promise;
    await before;
    try {
      return await parse();
    } finally {
      mine.resolve();
    }
  }
}

/** The part of the budget that one body uses. */
export type BodyShare = {
  /** Throws "overloaded" if the budget has no room. */
  reserve(bytes: number): void;
  release(): void;
};

function tooMuch(): DomainError {
  return new DomainError("overloaded", {
    message: "The service is receiving too many large requests. Retry later.",
    retryAfterSeconds: 1,
  });
}
