import { Worker } from "node:worker_threads";
import type { CountOptions } from "../domain/count-options.ts";
import { DomainError } from "../domain/errors.ts";
import { Shares } from "../domain/shares.ts";

/** What the small prompts may take, and the large ones beside them: those leave the small ones their room. */
export type ThreadLimits = {
  /** Prompts that wait or are counted. */
  readonly jobsMax: number;
  /** Of them together; one of the largest prompts that the API takes must fit. */
  readonly charactersMax: number;
};

export const THREAD_LIMITS: ThreadLimits = { jobsMax: 256, charactersMax: 160_000_000 };

/** What is sent in one go, and the most a small prompt has. Texts are not split: the longest takes a second. */
const LOAD_CHARACTERS = 65_536;
/** The table of tokens takes 12 of them. */
const HEAP_MIB = 128;

/** What the thread is sent at a time. */
export type Load = {
  readonly texts: readonly string[];
  /** Counted no further than beyond this many. */
  readonly most: number;
};

/** Who waits, and what room of the line is taken. */
type Line = {
  readonly jobs: Shares;
  readonly characters: Shares;
  readonly waiting: Job[];
  lastPayer: string | undefined;
};

type Job = {
  readonly line: Line;
  readonly payer: string | undefined;
  readonly texts: readonly string[];
  readonly characters: number;
  /** Counted no further than beyond this many. */
  readonly most: number;
  /** The first text that was not sent yet. */
  next: number;
  tokens: number;
  readonly end: (outcome: number | Error) => void;
};

/**
 * Counts prompts by turns in a thread that is started when there is one. Small and large ones wait in lines of their
 * own and take turns, so that no number of large ones keeps a small one for longer than one of their turns.
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

  /** Jobs that wait or are counted. */
  get jobs(): number {
    return this.#small.jobs.taken + this.#large.jobs.taken;
  }

  /** The id of the thread; undefined while there is none. */
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
        line.jobs.give(payer, 1);
        line.characters.give(payer, characters);
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
    line.jobs.give(payer, 1);
    return false;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const waiting = [this.#small, this.#large].flatMap((line) => line.waiting.splice(0));
    for (const job of [...waiting, this.#current]) job?.end(new DomainError("unavailable"));
    await this.#worker?.terminate();
  }

  /** The thread goes on with what it has got; nobody waits for that any more. */
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
      // What it was counting may be what ended it; the others get a new thread.
      const job = this.#current;
      this.#current = undefined;
      job?.end(new DomainError("unavailable", { cause: failure }));
      this.#send();
    });
    return worker;
  }
}

function newLine(): Line {
  return { jobs: new Shares(), characters: new Shares(), waiting: [], lastPayer: undefined };
}

/** The first of another payer than the last one's, where there is one. */
function nextOf(line: Line): Job | undefined {
  const at = line.waiting.findIndex(({ payer }) => payer !== line.lastPayer);
  const [job] = line.waiting.splice(Math.max(0, at), 1);
  if (job) line.lastPayer = job.payer;
  return job;
}
