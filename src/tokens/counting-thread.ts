import { Worker } from "node:worker_threads";
import { DomainError } from "../domain/errors.ts";

export type ThreadLimits = {
  /** Prompts that wait or are counted. */
  readonly jobsMax: number;
  /** Of all of them together; one of the largest prompts that the API takes must fit. */
  readonly charactersMax: number;
};

export const THREAD_LIMITS: ThreadLimits = { jobsMax: 256, charactersMax: 160_000_000 };

/** From here on the next one has its turn. Texts are not split: the longest takes a second. */
const LOAD_CHARACTERS = 65_536;
/** The table of tokens takes 12 of them. */
const HEAP_MIB = 128;

/** What the thread is sent at a time. */
export type Load = {
  readonly texts: readonly string[];
  /** Counted no further than beyond this many. */
  readonly most: number;
};

type Job = {
  readonly texts: readonly string[];
  readonly characters: number;
  /** Counted no further than beyond this many. */
  readonly most: number;
  /** The first text that was not sent yet. */
  next: number;
  tokens: number;
  readonly end: (outcome: number | Error) => void;
};

/** Counts large prompts, one after the other and each by turns, in a thread that is started when there is one. */
export class CountingThread {
  readonly #limits: ThreadLimits;
  readonly #waiting: Job[] = [];
  #current: Job | undefined;
  #jobs = 0;
  #characters = 0;
  #worker: Worker | undefined;
  #closed = false;

  constructor(limits: ThreadLimits) {
    this.#limits = limits;
  }

  /** Jobs that wait or are counted. */
  get jobs(): number {
    return this.#jobs;
  }

  /** The id of the thread; undefined while there is none. */
  get threadId(): number | undefined {
    return this.#worker?.threadId;
  }

  count(
    texts: readonly string[],
    characters: number,
    signal: AbortSignal | undefined,
    most: number,
  ): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new DomainError("unavailable");
      const { jobsMax, charactersMax } = this.#limits;
      if (this.#jobs >= jobsMax || this.#characters + characters > charactersMax) {
        throw new DomainError("overloaded");
      }
      let ended = false;
      const end = (outcome: number | Error) => {
        if (ended) return;
        ended = true;
        this.#jobs--;
        this.#characters -= characters;
        signal?.removeEventListener("abort", abort);
        if (typeof outcome === "number") resolve(outcome);
        else reject(outcome);
      };
      const job: Job = { texts, characters, most, next: 0, tokens: 0, end };
      const abort = () => {
        this.#drop(job);
        end(signal?.reason as Error);
      };
      this.#jobs++;
      this.#characters += characters;
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.push(job);
      this.#send();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const job of [...this.#waiting.splice(0), this.#current]) job?.end(new DomainError("unavailable"));
    await this.#worker?.terminate();
  }

  /** The thread goes on with what it has got; nobody waits for that any more. */
  #drop(job: Job): void {
    const at = this.#waiting.indexOf(job);
    if (at >= 0) this.#waiting.splice(at, 1);
    else job.next = job.texts.length;
  }

  #send(): void {
    if (this.#current || this.#closed) return;
    const job = this.#waiting.shift();
    if (!job) return;
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
      if (job.next < job.texts.length && job.tokens <= job.most) this.#waiting.push(job);
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
      // What it was counting may be what ended it; the others get a new thread.
      const job = this.#current;
      this.#current = undefined;
      job?.end(new DomainError("unavailable", { cause: failure }));
      this.#send();
    });
    return worker;
  }
}
