import { DomainError } from "../domain/errors.ts";
import type { Prompt } from "../domain/generation.ts";
import type { Model, UpstreamSettings } from "../domain/model.ts";
import { type BackOffOptions, backOffMs } from "./back-off.ts";
import type { BreakerOptions, BreakerState } from "./breaker.ts";
import { UpstreamFailure } from "./failure.ts";
import { Line, type OnTry, type Try } from "./line.ts";
import { Progress } from "./progress.ts";
import type { SlotOptions } from "./slots.ts";
import type { Upstream, UpstreamEvent } from "./upstream.ts";

export type RunnerLimits = {
  readonly slots: SlotOptions;
  readonly sandboxSlots: SlotOptions;
  readonly breaker: BreakerOptions;
  readonly backOff: BackOffOptions;
};

/** Per upstream. */
export const RUNNER_LIMITS: RunnerLimits = {
  // Each is a connection to a server that has a queue of its own.
  slots: { running: 1_024, waiting: 1_024, waitMs: 10_000 },
  // Nobody is asked: as many as there can be generations in a process.
  sandboxSlots: { running: 8_192, waiting: 0, waitMs: 0 },
  breaker: { failuresMax: 5, openMs: 1_000, longestOpenMs: 10_000 },
  backOff: { triesMax: 3, firstMs: 100, longestMs: 2_000, retryAfterMsMax: 3_000 },
};

type RunnerOptions = {
  readonly limits: RunnerLimits;
  readonly open: (settings: UpstreamSettings) => Upstream;
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Throws when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly onTry: OnTry;
};

type UpstreamStatus = {
  readonly name: string;
  readonly running: number;
  readonly waiting: number;
  readonly breaker: BreakerState;
};

/** Brings each prompt to the first upstream of its model that answers. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #lines = new Map<string, Line>();

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Opens the upstreams of a catalog, and closes those that are in it no more once their calls have ended. */
  async use(models: readonly Model[]): Promise<void> {
    const settings = models.flatMap(({ upstreams }) => upstreams);
    // What cannot be opened is found before anything changes: the catalog that was good goes on.
    const wanted = new Set(settings.map((one) => this.#line(one)));
    for (const line of this.#lines.values()) line.kept = wanted.has(line);
    await this.#closeUnused([...this.#lines.values()]);
  }

  /**
   * The reply of the model: pieces, then one end. Throws the signal's reason when that aborts, `overloaded` when no
   * upstream had room, and `upstream_error` when none came to an end. What was read until then was produced; once there
   * is a piece, nobody else is asked.
   */
  run(
    model: Model,
    prompt: Prompt,
    signal: AbortSignal,
    progress = new Progress(),
  ): AsyncIterableIterator<UpstreamEvent> {
    const stop = new AbortController();
    const run = { prompt, signal, progress, stop, isWhole: false };
    const events = this.#reply(model.upstreams, run);
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: () => events.next(),
      // A generator alone would wait for the upstream before it stops.
      return: () => {
        if (!run.isWhole) stop.abort(STOPPED);
        return events.return();
      },
    };
  }

  status(): UpstreamStatus[] {
    return [...this.#lines.values()].map(({ upstream, slots, breaker }) => ({
      name: upstream.name,
      running: slots.running,
      waiting: slots.waiting,
      breaker: breaker.state,
    }));
  }

  /** Closes each upstream, those that are being asked with their last call. */
  async close(): Promise<void> {
    await this.use([]);
  }

  async *#reply(
    upstreams: readonly UpstreamSettings[],
    run: Run,
  ): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { signal, stop } = run;
    signal.throwIfAborted();
    const abort = () => stop.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const lines = upstreams.map((settings) => this.#line(settings));
    for (const line of lines) line.users++;
    let current: Begun | undefined;
    try {
      current = await this.#begin(lines, run);
      for (let event = current.first; ; event = eventOf(await current.events.next())) {
        if (event.kind === "done") {
          run.isWhole = true;
          current.attempt.succeed();
        }
        yield event;
        if (run.isWhole) return;
      }
    } catch (error) {
      if (stop.signal.reason === STOPPED) return;
      // However what was waited for told of it.
      stop.signal.throwIfAborted();
      throw current ? upstreamError(judge(error, current.attempt, stop.signal)) : error;
    } finally {
      signal.removeEventListener("abort", abort);
      current?.attempt.close();
      await current?.events.return?.();
      for (const line of lines) line.users--;
      await this.#closeUnused(lines);
    }
  }

  /** Asks one upstream after the other until a reply begins. */
  async #begin(lines: readonly Line[], { prompt, progress, stop: { signal } }: Run): Promise<Begun> {
    let cause: unknown;
    for (const line of lines) {
      for (let tries = 1; ; tries++) {
        const attempt = await line.start(signal, tries - 1);
        if (attempt === "busy") break;
        if (attempt === "down") {
          cause ??= new UpstreamFailure("unreachable", `${line.upstream.name} failed too often to be asked`);
          break;
        }
        const events = line.upstream.generate(prompt, signal, progress)[Symbol.asyncIterator]();
        try {
          const first = eventOf(await events.next());
          attempt.begin();
          return { attempt, events, first };
        } catch (error) {
          cause = judge(error, attempt, signal);
          progress.isAsked = false;
        }
        const waitMs = backOffMs(
          this.#options.limits.backOff,
          cause as UpstreamFailure,
          tries,
          this.#options.random,
        );
        if (waitMs === undefined) break;
        await this.#options.sleep(waitMs, signal);
      }
    }
    throw cause === undefined ? new DomainError("overloaded") : upstreamError(cause);
  }

  #line(settings: UpstreamSettings): Line {
    const name = identityOf(settings);
    const known = this.#lines.get(name);
    if (known) return known;
    const { limits, open } = this.#options;
    const slots = settings.kind === "sandbox" ? limits.sandboxSlots : limits.slots;
    const line = new Line(open(settings), { ...limits, slots }, this.#options);
    this.#lines.set(name, line);
    return line;
  }

  async #closeUnused(lines: readonly Line[]): Promise<void> {
    const unused = lines.filter((line) => !line.kept && line.users === 0);
    if (unused.length === 0) return;
    for (const [name, line] of this.#lines) if (unused.includes(line)) this.#lines.delete(name);
    await Promise.all(unused.map(({ upstream }) => upstream.close()));
  }
}

type Run = {
  readonly prompt: Prompt;
  readonly signal: AbortSignal;
  readonly progress: Progress;
  /** Aborted with the signal, and when the reader stops. */
  readonly stop: AbortController;
  isWhole: boolean;
};

type Begun = {
  readonly attempt: Try;
  readonly events: AsyncIterator<UpstreamEvent>;
  readonly first: UpstreamEvent;
};

/** Why a reply ends that nobody reads any more. */
const STOPPED = Symbol("stopped");

function eventOf({ done, value }: IteratorResult<UpstreamEvent>): UpstreamEvent {
  if (done) throw new UpstreamFailure("dropped", "the reply has no end");
  return value;
}

/** Notes how the try ended. What is no failure of the upstream goes on as it is. */
function judge(error: unknown, attempt: Try, signal: AbortSignal): UpstreamFailure {
  if (!signal.aborted && error instanceof UpstreamFailure) {
    attempt.fail(error);
    return error;
  }
  attempt.close();
  throw signal.aborted ? signal.reason : error;
}

function upstreamError(cause: unknown): DomainError {
  return new DomainError("upstream_error", { cause });
}

/** Models with the same upstream share it. */
function identityOf(settings: UpstreamSettings): string {
  if (settings.kind === "sandbox") return `sandbox ${settings.delayMs}`;
  const { kind, baseUrl, apiKeyEnv = "", model, timeoutMs } = settings;
  return `${kind} ${baseUrl} ${apiKeyEnv} ${timeoutMs} ${model}`;
}
