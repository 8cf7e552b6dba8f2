import { AsyncLocalStorage } from "node:async_hooks";

/** A turn with the ends of so many calls, which are aborted, charged and logged, takes a few milliseconds. */
const ENDINGS_PER_TURN = 4;

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

/** Work that waits for its turn: each turn of the event loop does a limited number of steps. */
class TurnQueue {
  readonly #stepsPerTurn: number;
  readonly #waiting = new Rotation<() => void>();
  #isScheduled = false;

  constructor(stepsPerTurn: number) {
    this.#stepsPerTurn = stepsPerTurn;
  }

  add(owner: string | undefined, step: () => void): void {
    this.#waiting.add(owner, step);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#runTurn);
  }

  readonly #runTurn = (): void => {
    for (let i = 0; i < this.#stepsPerTurn; i++) this.#waiting.take()?.();
    this.#isScheduled = this.#waiting.size > 0;
    if (this.#isScheduled) setImmediate(this.#runTurn);
  };
}

/** Each large call waits for one step at most. */
const largeCalls = new TurnQueue(1);
const endings = new TurnQueue(ENDINGS_PER_TURN);

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
  return new Promise((resolve) => largeCalls.add(currentAccount.getStore(), resolve));
}

/**
 * Resolves in the turn in which a connection or a call ends, because its caller has left. Many callers can leave at once, and the
 * calls of others must not wait for their ends. Addresses take turns in rotation.
 */
export function turnToEnd(address: string): Promise<void> {
  return new Promise((resolve) => endings.add(address, resolve));
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

/** The share of the unused capacity that one account can use; the rest stays free for others. */
const MAX_SHARE = 7 / 8;

/**
 * A limit shared by accounts, or by remote addresses. A single one may use up to `maxShare` of the part that
 * the others do not use.
 */
export class FairShare {
  readonly #byAccount = new Map<string, number>();
  readonly #maxShare: number;
  #inUse = 0;

  constructor(maxShare = MAX_SHARE) {
    this.#maxShare = maxShare;
  }

  get inUse(): number {
    return this.#inUse;
  }

  /** Acquires an amount if the total stays within `max`. Without an account, only the total is limited. */
  acquire(accountId: string | undefined, amount: number, max: number): boolean {
    if (this.#inUse + amount > max) return false;
    if (accountId !== undefined) {
      const own = this.#byAccount.get(accountId) ?? 0;
      const others = this.#inUse - own;
      if (own + amount > (max - others) * this.#maxShare) return false;
      this.#byAccount.set(accountId, own + amount);
    }
    this.#inUse += amount;
    return true;
  }

  release(accountId: string | undefined, amount: number): void {
    this.#inUse -= amount;
    if (accountId === undefined) return;
    const own = (this.#byAccount.get(accountId) ?? 0) - amount;
    if (own > 0) this.#byAccount.set(accountId, own);
    else this.#byAccount.delete(accountId);
  }
}
