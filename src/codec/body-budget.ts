import { DomainError } from "../domain/errors.ts";
import { Shares } from "../domain/shares.ts";

/** A body that needs no more than this may use the room that is kept from larger ones. */
const SMALL_BYTES = 65_536;

type BodyBudgetOptions = {
  /** What the bodies that are being read may hold together. */
  readonly maxBytes: number;
  /** The part of it that only small bodies may use: however many large ones are sent, small calls get through. */
  readonly smallBytes: number;
  /** From the first look at a body to its end. */
  readonly bodyMs: number;
};

/** The memory of one process for bodies that are not messages yet, whatever their protocol. */
export class BodyBudget {
  readonly #options: BodyBudgetOptions;
  readonly #room = new Shares();
  #turn: Promise<void> = Promise.resolve();

  constructor(options: BodyBudgetOptions) {
    this.#options = options;
  }

  get bodyMs(): number {
    return this.#options.bodyMs;
  }

  /** Bytes of bodies that are in memory now. */
  get held(): number {
    return this.#room.taken;
  }

  /** Who sends the body has a share; small ones count against all of the room. */
  hold(sender: string | undefined): BodyHold {
    let mine = 0;
    return {
      add: (bytes) => {
        const { maxBytes, smallBytes } = this.#options;
        const limit = mine + bytes <= SMALL_BYTES ? maxBytes : maxBytes - smallBytes;
        if (!this.#room.take(sender, bytes, limit)) throw tooMuch();
        mine += bytes;
      },
      release: () => {
        this.#room.give(sender, mine);
        mine = 0;
      },
    };
  }

  /** Large bodies are parsed one after the other: each takes several times its size while it is. */
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

/** What one body takes of the budget. */
export type BodyHold = {
  /** Throws "overloaded" when there is no room. */
  add(bytes: number): void;
  release(): void;
};

function tooMuch(): DomainError {
  return new DomainError("overloaded", {
    message: "The service is receiving more than it can hold. Try again shortly.",
    retryAfterSeconds: 1,
  });
}
