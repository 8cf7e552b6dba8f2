import { Worker } from "node:worker_threads";
import type { CountOptions } from "../domain/count-options.ts";
import { DomainError } from "../domain/errors.ts";
import { FairShare } from "../domain/fair-share.ts";

/**
 * Limits of each queue. Small and large prompts have separate queues, so large ones cannot use up the room of
 * small ones.
 */
export type ThreadLimits = {
  /** Maximum number of prompts that wait or are counted. */
  readonly jobsMax: number;
  /** Maximum total characters of these prompts; one prompt of the API's maximum size must fit. */
  readonly charactersMax: number;
};

export const THREAD_LIMITS: ThreadLimits = { jobsMax: 256, charactersMax: 160_000_000 };

/**
 * Characters per message to the thread, and the maximum of a small prompt. A text is not split: the longest
 * takes one second.
 */
const LOAD_CHARACTERS = 65_536;
/** Heap limit of the thread; the token table takes 12 MiB of it. */
const HEAP_MIB = 128;

/** One message to the thread. */
export type Load = {
  readonly texts: readonly string[];
  /** Counting may stop once there are more tokens than this. */
  readonly most: number;
};

/** A queue of prompts and the room they take. */
type Line = {
  readonly jobs: FairShare;
  readonly characters: FairShare;
  readonly waiting: Job[];
  lastPayer: string | undefined;
};

type Job = {
  readonly line: Line;
  readonly payer: string | undefined;
  readonly texts: readonly string[];
  readonly characters: number;
  /** Counting may stop once there are more tokens than this. */
  readonly most: number;
  /** Index of the first text that has not been sent. */
  next: number;
  tokens: number;
  readonly end: (outcome: number | Error) => void;
};

/**
 * Counts prompts in a thread that starts on first use. Small and large prompts have separate queues that take
 * turns, so a small prompt waits for at most one turn of a large one, however many there are.
 */
export class CountingThread {
  readonly #limits: ThreadLimits;
  readonly #small = newLine();
  readonly #large = newLine();
  #current: Job | undefined;
  #last: Line = this.#large;
  #worker: Worker | undefined;
  #closed = false;

  constructor(limits: ThreadLimits) {
    this.#limits = limits;
  }

  /** Number of prompts that wait or are counted. */
  get jobs(): number {
    return this.#small.jobs.taken + this.#large.jobs.taken;
  }

  /** The id of the thread; undefined if none runs. */
  get threadId(): number | undefined {
    return this.#worker?.threadId;
  }

  count(texts: readonly string[], characters: number, options: CountOptions): Promise<number> {
    const { signal, payer, most = Number.POSITIVE_INFINITY } = options;
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new DomainError("unavailable");
      const line = characters <= LOAD_CHARACTERS ? this.#small : this.#large;
      if (!this.#enter(line, payer, characters)) throw new DomainError("overloaded");
      let ended = false;
      const end = (outcome: number | Error) => {
        if (ended) return;
        ended = true;
        line.jobs.release(payer, 1);
        line.characters.release(payer, characters);
        signal?.removeEventListener("abort", abort);
        if (typeof outcome === "number") resolve(outcome);
        else reject(outcome);
      };
      const job: Job = { line, payer, texts, characters, most, next: 0, tokens: 0, end };
      const abort = () => {
        this.#drop(job);
        end(signal?.reason as Error);
      };
      signal?.addEventListener("abort", abort, { once: true });
      line.waiting.push(job);
      this.#send();
    });
  }

  #enter(line: Line, payer: string | undefined, characters: number): boolean {
    const { jobsMax, charactersMax } = this.#limits;
    if (!line.jobs.take(payer, 1, jobsMax)) return false;
    if (line.characters.take(payer, characters, charactersMax)) return true;
    line.jobs.release(payer, 1);
    return false;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const waiting = [this.#small, this.#large].flatMap((line) => line.waiting.splice(0));
    for (const job of [...waiting, this.#current]) job?.end(new DomainError("unavailable"));
    await this.#worker?.terminate();
  }

  /** Removes a cancelled job. The thread still finishes the current message, whose result is ignored. */
  #drop(job: Job): void {
    const { waiting } = job.line;
    const at = waiting.indexOf(job);
    if (at >= 0) waiting.splice(at, 1);
    else job.next = job.texts.length;
  }

  #send(): void {
    if (this.#current || this.#closed) return;
    const other = this.#last === this.#small ? this.#large : this.#small;
    const job = nextOf(other) ?? nextOf(this.#last);
    if (!job) return;
    this.#last = job.line;
    this.#current = job;
    const texts: string[] = [];
    for (let characters = 0; characters < LOAD_CHARACTERS && job.next < job.texts.length; job.next++) {
      const text = job.texts[job.next] as string;
      texts.push(text);
      characters += text.length;
    }
    this.#worker ??= this.#start();
    const load: Load = { texts, most: job.most - job.tokens };
    this.#worker.postMessage(load);
  }

  #receive(tokens: number): void {
    const job = this.#current;
    this.#current = undefined;
    if (job) {
      job.tokens += tokens;
      if (job.next < job.texts.length && job.tokens <= job.most) job.line.waiting.push(job);
      else job.end(job.tokens);
    }
    this.#send();
  }

  #start(): Worker {
    const worker = new Worker(new URL("./thread-main.ts", import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
    });
    let failure: unknown;
    worker.on("message", (tokens: number) => this.#receive(tokens));
    worker.on("error", (error) => {
      failure = error;
    });
    worker.once("exit", () => {
      this.#worker = undefined;
      // The current job may have caused the exit, so it fails; the other jobs get a new thread.
      const job = this.#current;
      this.#current = undefined;
      job?.end(new DomainError("unavailable", { cause: failure }));
      this.#send();
    });
    return worker;
  }
}

function newLine(): Line {
  return { jobs: new FairShare(), characters: new FairShare(), waiting: [], lastPayer: undefined };
}

/** The first job of a payer other than the last one, or else the first job. */
function nextOf(line: Line): Job | undefined {
  const at = line.waiting.findIndex(({ payer }) => payer !== line.lastPayer);
  const [job] = line.waiting.splice(Math.max(0, at), 1);
  if (job) line.lastPayer = job.payer;
  return job;
}
