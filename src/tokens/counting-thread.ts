import { extname } from "node:path";
import { setFlagsFromString } from "node:v8";
import Tinypool from "tinypool";
import { DomainError } from "../domain/errors.ts";
import { FairShare } from "../domain/fairness.ts";
import type { CountOptions } from "../domain/prompt.ts";
import { splitTexts } from "./split-texts.ts";

export type ThreadLimits = {
  /** Maximum number of prompts that wait or are counted. */
  readonly maxPrompts: number;
  /** Maximum total characters of these prompts; one prompt of the API's maximum size must fit. */
  readonly maxCharacters: number;
  /** The thread ends after this time without a task. Starting it again takes 0.2 s. */
  readonly idleMs: number;
};

/** Characters per task of the thread: at most 0.1 s of work, so that prompts take turns. */
const TASK_CHARACTERS = 16_384;

/**
 * Counts prompts in a thread that starts on first use. A prompt is counted task by task, and each account has one
 * task at a time in the queue of the thread, so accounts take turns however much one of them sends.
 */
export class CountingThread {
  readonly #limits: ThreadLimits;
  readonly #prompts = new FairShare();
  readonly #characters = new FairShare();
  readonly #tasks = new Map<string, Promise<unknown>>();
  #pool: Tinypool | undefined;
  #closed = false;

  constructor(limits: ThreadLimits) {
    this.#limits = limits;
  }

  async count(texts: readonly string[], characters: number, options: CountOptions): Promise<number> {
    const { signal, accountId, maxTokens = Number.POSITIVE_INFINITY } = options;
    if (!this.#reserve(accountId, characters)) throw new DomainError("overloaded");
    try {
      let tokens = 0;
      for (const task of splitTexts(texts, TASK_CHARACTERS)) {
        if (tokens > maxTokens) break;
        tokens += await untilAborted(this.#countInTurn(task, accountId, signal), signal);
      }
      return tokens;
    } finally {
      this.#prompts.release(accountId, 1);
      this.#characters.release(accountId, characters);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const pool = this.#pool;
    this.#pool = undefined;
    await pool?.destroy();
  }

  #reserve(accountId: string | undefined, characters: number): boolean {
    const { maxPrompts, maxCharacters } = this.#limits;
    if (!this.#prompts.acquire(accountId, 1, maxPrompts)) return false;
    if (this.#characters.acquire(accountId, characters, maxCharacters)) return true;
    this.#prompts.release(accountId, 1);
    return false;
  }

  async #countInTurn(task: string[], accountId: string | undefined, signal: AbortSignal | undefined) {
    if (accountId === undefined) return await this.#countNow(task, signal);
    const earlier = this.#tasks.get(accountId) ?? Promise.resolve();
    const counted = earlier.then(() => this.#countNow(task, signal));
    const ended = counted.catch(() => undefined);
    this.#tasks.set(accountId, ended);
    try {
      return await counted;
    } finally {
      if (this.#tasks.get(accountId) === ended) this.#tasks.delete(accountId);
    }
  }

  async #countNow(task: string[], signal: AbortSignal | undefined): Promise<number> {
    signal?.throwIfAborted();
    if (this.#closed) throw new DomainError("unavailable");
    this.#pool ??= createPool(this.#limits.idleMs);
    try {
      // Without the signal: the pool would stop its thread, and the next task would have to load the encoding again.
      return (await this.#pool.run(task)) as number;
    } catch (cause) {
      throw new DomainError("unavailable", { cause });
    }
  }
}

function createPool(idleMs: number): Tinypool {
  // V8 reads this when a thread starts, and it overrides the limits of the thread. With the 32 MiB of the command line, a
  // thread takes 54 MiB more and the same time.
  setFlagsFromString("--max-semi-space-size=4");
  const pool = new Tinypool({
    // The published package has the same files as .js.
    filename: new URL(`./count-tokens${extname(import.meta.url)}`, import.meta.url).href,
    name: "countTexts",
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: idleMs,
  });
  // A thread that fails between two tasks is replaced as well; no caller is affected.
  pool.on("error", () => undefined);
  return pool;
}

/** The result, or the signal's reason as soon as it aborts. */
async function untilAborted<T>(result: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return await result;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
