import { AsyncLocalStorage } from "node:async_hooks";

const currentAccount = new AsyncLocalStorage<string>();

/** Waiting items, in a queue per account. Accounts take turns: one with many items delays the others as little as one with a single item. */
export class Rotation<Item> {
  /** In the order of their next turns. */
  readonly #queues = new Map<string | undefined, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(accountId: string | undefined, item: Item): void {
    this.#size++;
    const queue = this.#queues.get(accountId);
    if (queue) queue.push(item);
    else this.#queues.set(accountId, [item]);
  }

  take(): Item | undefined {
    for (const [accountId, queue] of this.#queues) {
      this.#size--;
      this.#queues.delete(accountId);
      const item = queue.shift();
      if (queue.length > 0) this.#queues.set(accountId, queue);
      return item;
    }
    return undefined;
  }
}

/** Each call waits for one step at most. */
const waiting = new Rotation<() => void>();

/** Runs a call of an account. Everything that it awaits shares the turns of the account. */
export function inTurnsOf<Result>(accountId: string | undefined, run: () => Result): Result {
  return accountId === undefined ? run() : currentAccount.run(accountId, run);
}

/**
 * Resolves in a later turn of the event loop. Each turn has one step of all large calls together, so several large calls
 * delay small ones as little as a single one. Accounts take steps in rotation: an account with many large calls delays the others
 * as little as one with a single call. Work without an account has the turns of one more account.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.add(currentAccount.getStore(), resolve);
    if (waiting.size === 1) setImmediate(startNext);
  });
}

/** Counts the work of a loop, which waits for a turn after so many units of it. */
export class TurnMeter {
  readonly #unitsPerTurn: number;
  #done = 0;

  constructor(unitsPerTurn: number) {
    this.#unitsPerTurn = unitsPerTurn;
  }

  /** Call this after the work. Returns whether the loop must wait for a turn. */
  isDue(units: number): boolean {
    this.#done += units;
    if (this.#done < this.#unitsPerTurn) return false;
    this.#done = 0;
    return true;
  }
}

function startNext(): void {
  waiting.take()?.();
  if (waiting.size > 0) setImmediate(startNext);
}
