import { DomainError } from "../../domain/errors.ts";
import type { Model, UpstreamSettings } from "../../domain/model.ts";
import type { Upstream, UpstreamEvent } from "../upstream.ts";
import type { UpstreamCall } from "../upstream-call.ts";
import type { Attempt, OnReport } from "./attempt.ts";
import { type BackOffOptions, backOffMs } from "./back-off.ts";
import type { BreakerOptions } from "./breaker.ts";
import type { CircuitState, CircuitTools } from "./circuit.ts";
import { UpstreamFailure } from "./failure.ts";
import { GuardedUpstream } from "./guarded-upstream.ts";
import type { SlotOptions } from "./slots.ts";

export type RunnerLimits = {
  readonly slots: SlotOptions;
  readonly sandboxSlots: SlotOptions;
  readonly breaker: BreakerOptions;
  readonly backOff: BackOffOptions;
};

/** Limits per upstream. */
export const RUNNER_LIMITS: RunnerLimits = {
  // Each slot is one connection to a server that has its own queue.
  slots: { running: 1_024, waiting: 1_024, waitMs: 10_000 },
  // The sandbox has no server, so this is the limit of generations per process.
  sandboxSlots: { running: 8_192, waiting: 0, waitMs: 0 },
  breaker: { maxFailures: 5, proofMs: 1_000, openMs: 1_000, maxOpenMs: 10_000 },
  backOff: { triesMax: 3, firstMs: 100, longestMs: 2_000, retryAfterMsMax: 3_000 },
};

type RunnerOptions = CircuitTools & {
  readonly limits: RunnerLimits;
  readonly open: (settings: UpstreamSettings) => Upstream;
  /** Throws when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly onReport: OnReport;
};

type UpstreamStatus = {
  readonly name: string;
  readonly running: number;
  readonly waiting: number;
  /** State of the shared circuit. */
  readonly breaker: CircuitState;
  readonly openAccounts: number;
};

/** Sends each prompt to the upstreams of its model, in order, until one replies. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #upstreams = new Map<string, GuardedUpstream>();

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Opens the upstreams of a catalog. Upstreams that are no longer in it close after their last call. */
  async use(models: readonly Model[]): Promise<void> {
    const settings = models.flatMap(({ upstreams }) => upstreams);
    // An upstream that cannot be opened throws before any change, so the current catalog stays in use.
    const wanted = new Set(settings.map((one) => this.#guarded(one)));
    for (const guarded of this.#upstreams.values()) guarded.kept = wanted.has(guarded);
    await this.#closeUnused([...this.#upstreams.values()]);
  }

  /**
   * The model's reply: pieces, then one end. Throws the signal's reason after an abort, `overloaded` when no
   * upstream had a free slot, and `upstream_error` when every upstream failed. There is no failover after the
   * first piece.
   */
  run(call: UpstreamCall): AsyncIterableIterator<UpstreamEvent> {
    const stop = new AbortController();
    const run = { call, stop, isWhole: false };
    const events = this.#reply(run);
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: () => events.next(),
      // The return method of a generator would wait for the upstream's next event.
      return: () => {
        if (!run.isWhole) stop.abort(STOPPED);
        return events.return();
      },
    };
  }

  status(): UpstreamStatus[] {
    return [...this.#upstreams.values()].map(({ upstream, slots, breaker }) => ({
      name: upstream.name,
      running: slots.running,
      waiting: slots.waiting,
      breaker: breaker.state,
      openAccounts: breaker.openAccounts,
    }));
  }

  /** Closes each upstream. An upstream with running calls closes after the last of them. */
  async close(): Promise<void> {
    await this.use([]);
  }

  async *#reply(run: Run): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { call, stop } = run;
    call.signal.throwIfAborted();
    const abort = () => stop.abort(call.signal.reason);
    call.signal.addEventListener("abort", abort, { once: true });
    const upstreams = call.model.upstreams.map((settings) => this.#guarded(settings));
    for (const guarded of upstreams) guarded.users++;
    let current: Begun | undefined;
    try {
      current = await this.#begin(upstreams, call, stop.signal);
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
      // After an abort, the reason of the abort takes precedence over the resulting error.
      stop.signal.throwIfAborted();
      throw current ? upstreamError(judge(error, current.attempt, stop.signal)) : error;
    } finally {
      call.signal.removeEventListener("abort", abort);
      current?.attempt.close();
      await current?.events.return?.();
      for (const guarded of upstreams) guarded.users--;
      await this.#closeUnused(upstreams);
    }
  }

  /** Tries the upstreams in order until a reply begins. */
  async #begin(
    upstreams: readonly GuardedUpstream[],
    call: UpstreamCall,
    signal: AbortSignal,
  ): Promise<Begun> {
    const { limits, random, sleep } = this.#options;
    const { prompt, progress } = call;
    let cause: unknown;
    for (const guarded of upstreams) {
      const { upstream } = guarded;
      for (let number = 1; ; number++) {
        const attempt = await guarded.start(call, number, signal);
        if (attempt === "busy") break;
        if (attempt === "down") {
          cause ??= new UpstreamFailure("unreachable", `the breaker of ${upstream.name} is open`);
          break;
        }
        progress.upstream = upstream.name;
        const events = upstream.generate(prompt, signal, progress)[Symbol.asyncIterator]();
        try {
          const first = eventOf(await events.next());
          attempt.begin();
          return { attempt, events, first };
        } catch (error) {
          cause = judge(error, attempt, signal);
          progress.isAsked = false;
        }
        const waitMs = backOffMs(limits.backOff, cause as UpstreamFailure, number, random);
        if (waitMs === undefined) break;
        await sleep(waitMs, signal);
      }
    }
    throw cause === undefined ? new DomainError("overloaded") : upstreamError(cause);
  }

  #guarded(settings: UpstreamSettings): GuardedUpstream {
    const name = identityOf(settings);
    const known = this.#upstreams.get(name);
    if (known) return known;
    const { limits, open } = this.#options;
    const slots = settings.kind === "sandbox" ? limits.sandboxSlots : limits.slots;
    const guarded = new GuardedUpstream(open(settings), { ...limits, slots }, this.#options);
    this.#upstreams.set(name, guarded);
    return guarded;
  }

  async #closeUnused(upstreams: readonly GuardedUpstream[]): Promise<void> {
    const unused = upstreams.filter((guarded) => !guarded.kept && guarded.users === 0);
    if (unused.length === 0) return;
    for (const [name, guarded] of this.#upstreams) if (unused.includes(guarded)) this.#upstreams.delete(name);
    await Promise.all(unused.map(({ upstream }) => upstream.close()));
  }
}

type Run = {
  readonly call: UpstreamCall;
  /** Aborted by the call's signal, or when the reader stops. */
  readonly stop: AbortController;
  isWhole: boolean;
};

type Begun = {
  readonly attempt: Attempt;
  readonly events: AsyncIterator<UpstreamEvent>;
  readonly first: UpstreamEvent;
};

/** The abort reason when the reader stops. */
const STOPPED = Symbol("stopped");

function eventOf({ done, value }: IteratorResult<UpstreamEvent>): UpstreamEvent {
  if (done) throw new UpstreamFailure("dropped", "the reply has no end");
  return value;
}

/** Ends the attempt with its failure. Throws any error that is not an upstream failure. */
function judge(error: unknown, attempt: Attempt, signal: AbortSignal): UpstreamFailure {
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

/** The identity of an upstream: models with the same settings share one. */
function identityOf(settings: UpstreamSettings): string {
  if (settings.kind === "sandbox") return `sandbox ${settings.delayMs}`;
  const { kind, baseUrl, apiKeyEnv = "", model, timeoutMs } = settings;
  return `${kind} ${baseUrl} ${apiKeyEnv} ${timeoutMs} ${model}`;
}
