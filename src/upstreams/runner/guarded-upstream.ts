import type { AttemptResult } from "../../domain/call-trace.ts";
import { FairShare } from "../../domain/fairness.ts";
import type { UpstreamSettings } from "../../domain/model.ts";
import { outputTokensOf } from "../../domain/price.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { RecordAttempt } from "../../telemetry/telemetry.ts";
import type { Upstream, UpstreamCall, UpstreamEnd, UpstreamEvent } from "../upstream.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import { Breaker, type BreakerOptions, type CircuitTools, type Pass } from "./breaker.ts";

type GuardTools = CircuitTools & { readonly onReport: OnReport };

export class GuardedUpstream {
  readonly upstream: Upstream;
  readonly breaker: Breaker;
  readonly slots: Slots;
  readonly #settings: UpstreamSettings;
  readonly #tools: GuardTools;
  /** Number of running calls that may use it. */
  users = 0;

  constructor(
    settings: UpstreamSettings,
    upstream: Upstream,
    options: { readonly breaker: BreakerOptions; readonly slots: SlotOptions },
    tools: GuardTools,
  ) {
    this.#settings = settings;
    this.upstream = upstream;
    this.breaker = new Breaker(options.breaker, tools);
    this.slots = new Slots(options.slots);
    this.#tools = tools;
  }

  /**
   * Starts a request with a slot and a pass of the breaker. Returns "busy" without a slot and "down" if the
   * breaker refuses.
   */
  async start(call: UpstreamCall, number: number, signal: AbortSignal): Promise<Attempt | "busy" | "down"> {
    const { upstream, breaker, slots } = this;
    const { accountId, prompt, progress } = call;
    const { now, onReport } = this.#tools;
    const settings = this.#settings;
    const report = (outcome: Outcome, failure?: UpstreamFailure, result?: AttemptResult) =>
      onReport({ call, upstream: upstream.name, settings, number, outcome, failure, result });
    const acquired = slots.acquire(accountId, signal);
    if (!(acquired === true || (await acquired))) {
      report("busy");
      return "busy";
    }
    const pass = breaker.admit(accountId, number > 1);
    if (!pass) {
      slots.release(accountId);
      report("down");
      return "down";
    }
    progress.upstream = upstream.name;
    const span = call.trace?.startAttempt({ model: call.model, settings, prompt, number });
    const events = upstream.generate(prompt, signal, progress, span?.headers)[Symbol.asyncIterator]();
    return new Attempt({
      events,
      signal,
      pass,
      breaker,
      now,
      onEnd: (result, failure) => {
        slots.release(accountId);
        span?.end(result);
        report(result.outcome, failure, result);
      },
    });
  }
}

/** How an attempt ended. With "busy" and "down" no request was sent to the upstream. */
export type Outcome = "ok" | "cancelled" | "busy" | "down" | UpstreamFailure["kind"];

export type AttemptReport = {
  readonly call: UpstreamCall;
  readonly upstream: string;
  readonly settings: UpstreamSettings;
  /** Counts from 1 for each upstream of a call. */
  readonly number: number;
  readonly outcome: Outcome;
  readonly failure: UpstreamFailure | undefined;
  /** Undefined if no request was sent. */
  readonly result: AttemptResult | undefined;
};

/** Called at the end of every attempt. */
export type OnReport = (report: AttemptReport) => void;

type ReportOptions = {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined if no metrics are exported. */
  readonly recordAttempt: RecordAttempt | undefined;
};

/** Reports attempts to the metrics, and failures to the log. */
export function reportAttempts({ log, metrics, recordAttempt }: ReportOptions): OnReport {
  return (report) => {
    const { call, upstream, settings, outcome, failure, result } = report;
    metrics.upstreamAttempts.inc([upstream, outcome]);
    measureAttempt(metrics, report);
    if (result) recordAttempt?.({ model: call.model, settings, prompt: call.prompt }, result);
    if (failure) log.warn(fieldsOf(report, failure), "upstream attempt failed");
  };
}

function measureAttempt(metrics: Metrics, { call, upstream, result }: AttemptReport): void {
  if (!result) return;
  const { startedAtMs, firstPieceAtMs, endedAtMs, usage } = result;
  const model = call.model.id;
  metrics.attemptDuration.observe([upstream], (endedAtMs - startedAtMs) / 1_000);
  if (firstPieceAtMs === undefined) return;
  metrics.firstToken.observe([model], (firstPieceAtMs - startedAtMs) / 1_000);
  const tokens = usage ? outputTokensOf(usage) : 0;
  if (tokens > 0 && endedAtMs > firstPieceAtMs)
    metrics.tokenRate.observe([model], tokens / ((endedAtMs - firstPieceAtMs) / 1_000));
}

/** Omits the stack: a failed upstream is not a bug of the server. */
function fieldsOf({ call, upstream, number }: AttemptReport, failure: UpstreamFailure) {
  return {
    request_id: call.requestId,
    trace_id: call.trace?.traceId,
    account_id: call.accountId,
    model: call.model.id,
    upstream,
    attempt: number,
    reason: failure.kind,
    detail: failure.message,
  };
}

type AttemptOptions = {
  readonly events: AsyncIterator<UpstreamEvent>;
  readonly signal: AbortSignal;
  readonly pass: Pass;
  readonly breaker: Breaker;
  /** By performance.now(). */
  readonly now: () => number;
  readonly onEnd: (result: AttemptResult & { readonly outcome: Outcome }, failure?: UpstreamFailure) => void;
};

/** One request of one call to one upstream. The breaker is notified of each change of its state. */
export class Attempt {
  readonly #options: AttemptOptions;
  readonly #startedAtMs: number;
  #firstPieceAtMs: number | undefined;
  #state: "requested" | "replying" | "ended" = "requested";

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.#startedAtMs = options.now();
  }

  /**
   * The next event of the reply. Throws the signal's reason after an abort, and an UpstreamFailure if the
   * upstream failed. The attempt ends with its last event or its failure. Not an async function, which would
   * create two objects more for each piece.
   */
  next(): Promise<UpstreamEvent> {
    return this.#options.events.next().then(this.#onResult, this.#onError);
  }

  /** Called when the caller reads no further. */
  async close(): Promise<void> {
    this.#cancel();
    await this.#options.events.return?.();
  }

  readonly #onResult = ({ done, value: event }: IteratorResult<UpstreamEvent>): UpstreamEvent => {
    try {
      if (done === true) throw new UpstreamFailure("dropped", "the reply has no end");
      if (this.#state === "requested") this.#begin(event);
      if (event.kind === "done") this.#succeed(event);
      return event;
    } catch (error) {
      return this.#onError(error);
    }
  };

  readonly #onError = (error: unknown): never => {
    const { signal } = this.#options;
    if (!signal.aborted && error instanceof UpstreamFailure) this.#fail(error);
    else this.#cancel();
    throw signal.aborted ? signal.reason : error;
  };

  #begin({ kind }: UpstreamEvent): void {
    this.#state = "replying";
    if (kind !== "done") this.#firstPieceAtMs = this.#options.now();
    this.#options.breaker.begin(this.#options.pass);
  }

  #succeed(end: UpstreamEnd): void {
    if (this.#end("ok", undefined, end)) this.#options.breaker.succeed(this.#options.pass);
  }

  #fail(failure: UpstreamFailure): void {
    const { breaker, pass } = this.#options;
    if (!this.#end(failure.kind, failure)) return;
    if (failure.isUnhealthy) breaker.fail(pass, failure);
    else breaker.succeed(pass);
  }

  #cancel(): void {
    if (this.#end("cancelled")) this.#options.breaker.cancel(this.#options.pass);
  }

  #end(outcome: Outcome, failure?: UpstreamFailure, end?: UpstreamEnd): boolean {
    if (this.#state === "ended") return false;
    this.#state = "ended";
    const { now, onEnd } = this.#options;
    const result = {
      outcome,
      startedAtMs: this.#startedAtMs,
      endedAtMs: now(),
      firstPieceAtMs: this.#firstPieceAtMs,
      finishReason: end?.finishReason,
      usage: end?.usage,
    };
    onEnd(result, failure);
    return true;
  }
}

export type SlotOptions = {
  readonly maxRunning: number;
  /** Further calls are refused. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
};

type Waiter = { readonly accountId: string; readonly settle: (isGranted: boolean) => void };

/**
 * Limits the running and the waiting calls of an upstream. Each account gets a share of both. Waiting
 * accounts take turns, and calls of one account keep their order.
 */
export class Slots {
  readonly #options: SlotOptions;
  readonly #running = new FairShare();
  readonly #waiting = new FairShare();
  /** Queues of the accounts, in the order of their turns. */
  readonly #queues = new Map<string, Set<Waiter>>();

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running.inUse;
  }

  get waiting(): number {
    return this.#waiting.inUse;
  }

  /**
   * True if a slot was taken, which must be released once; false if none is free in time. Throws if none is free and
   * the signal is aborted, or is aborted while the call waits.
   */
  acquire(accountId: string, signal: AbortSignal): boolean | Promise<boolean> {
    if (this.#running.acquire(accountId, 1, this.#options.maxRunning)) return true;
    signal.throwIfAborted();
    if (!this.#waiting.acquire(accountId, 1, this.#options.maxWaiting)) return false;
    return this.#wait(accountId, signal);
  }

  /** A free slot goes to a waiting call before any new call. */
  release(accountId: string): void {
    this.#running.release(accountId, 1);
    for (const [next, queue] of this.#queues) {
      if (this.running >= this.#options.maxRunning) return;
      const [waiter] = queue;
      if (!waiter || !this.#running.acquire(next, 1, this.#options.maxRunning)) continue;
      this.#queues.delete(next);
      this.#queues.set(next, queue);
      waiter.settle(true);
    }
  }

  #wait(accountId: string, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const stopWaiting = () => {
        this.#dequeue(waiter);
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      };
      const waiter: Waiter = {
        accountId,
        settle: (isGranted) => {
          stopWaiting();
          resolve(isGranted);
        },
      };
      const abort = () => {
        stopWaiting();
        reject(signal.reason);
      };
      const timer = setTimeout(() => waiter.settle(false), this.#options.maxWaitMs);
      signal.addEventListener("abort", abort, { once: true });
      this.#enqueue(waiter);
    });
  }

  #enqueue(waiter: Waiter): void {
    const queue = this.#queues.get(waiter.accountId);
    if (queue) queue.add(waiter);
    else this.#queues.set(waiter.accountId, new Set([waiter]));
  }

  #dequeue(waiter: Waiter): void {
    const { accountId } = waiter;
    const queue = this.#queues.get(accountId);
    queue?.delete(waiter);
    if (queue?.size === 0) this.#queues.delete(accountId);
    this.#waiting.release(accountId, 1);
  }
}
