import { createHash } from "node:crypto";
import { DomainError } from "../../domain/errors.ts";
import type { Model, UpstreamSettings } from "../../domain/model.ts";
import { problemWith } from "../dialects.ts";
import type { Upstream, UpstreamCall, UpstreamEvent } from "../upstream.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import type { BreakerOptions, CircuitState, CircuitTools } from "./breaker.ts";
import { type Attempt, GuardedUpstream, type OnReport, type SlotOptions } from "./guarded-upstream.ts";

export type RunnerLimits = {
  readonly slots: SlotOptions;
  readonly sandboxSlots: SlotOptions;
  readonly breaker: BreakerOptions;
  readonly backOff: BackOffOptions;
};

export const RUNNER_LIMITS: RunnerLimits = {
  // Each slot is one connection to a server that has its own queue.
  slots: { maxRunning: 1_024, maxWaiting: 1_024, maxWaitMs: 10_000 },
  // The sandbox has no server, so this is the limit of generations per process.
  sandboxSlots: { maxRunning: 8_192, maxWaiting: 0, maxWaitMs: 0 },
  breaker: { maxFailures: 5, healthyMs: 1_000, openMs: 1_000, maxOpenMs: 10_000 },
  backOff: { maxAttempts: 3, firstMs: 100, maxMs: 2_000, maxRetryAfterMs: 3_000 },
};

type RunnerOptions = CircuitTools & {
  readonly limits: RunnerLimits;
  readonly open: (settings: UpstreamSettings) => Upstream;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly onReport: OnReport;
};

type Result =
  | ({ readonly kind: "replying" } & BegunReply)
  | { readonly kind: "failed"; readonly failure: UpstreamFailure }
  /** No request was sent: no slot was free, or the breaker is open. */
  | { readonly kind: "busy" | "down" };

/** Sends each prompt to the upstreams of its model until one replies: those with a weight first. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #upstreams: UpstreamSet;

  constructor(options: RunnerOptions) {
    const { limits, open } = options;
    this.#options = options;
    this.#upstreams = new UpstreamSet((settings) => {
      const slots = settings.kind === "sandbox" ? limits.sandboxSlots : limits.slots;
      return new GuardedUpstream(settings, open(settings), { ...limits, slots }, options);
    });
  }

  /**
   * Opens the upstreams of a catalog; if one cannot be opened, throws and keeps the current catalog. Upstreams
   * that are no longer in it close after their last call.
   */
  async use(models: readonly Model[]): Promise<void> {
    await this.#upstreams.replaceCatalog(models.flatMap(({ upstreams }) => upstreams));
  }

  /**
   * The model's reply: pieces, then one end. Throws the signal's reason after an abort, `overloaded` when no
   * upstream had a free slot, and `upstream_error` when every upstream failed. There is no failover after the
   * first piece.
   */
  streamEvents(call: UpstreamCall): AsyncIterableIterator<UpstreamEvent> {
    let upstreams: readonly GuardedUpstream[] = [];
    return new ReplyEvents({
      signal: call.signal,
      begin: (signal) => {
        const ordered = this.#orderedUpstreams(call);
        upstreams = this.#upstreams.acquire(ordered);
        return this.#startReply(upstreams, ordered, call, signal);
      },
      errorOf: (error) => (error instanceof UpstreamFailure ? upstreamError(error) : error),
      release: () => this.#upstreams.release(upstreams),
    });
  }

  status(): ReturnType<UpstreamSet["status"]> {
    return this.#upstreams.status();
  }

  /** Closes each upstream. An upstream with running calls closes after the last of them. */
  async close(): Promise<void> {
    await this.use([]);
  }

  #orderedUpstreams(call: UpstreamCall): readonly UpstreamSettings[] {
    const upstreams = usableUpstreams(call);
    if (upstreams.every(({ weight }) => weight === undefined)) return upstreams;
    const { accountId, idempotencyKey } = call;
    const { random } = this.#options;
    const draw = idempotencyKey === undefined ? () => 1 - random() : drawByKey(accountId, idempotencyKey);
    return orderOf(upstreams, draw);
  }

  /** Tries the upstreams in order until a reply begins. */
  async #startReply(
    upstreams: readonly GuardedUpstream[],
    settings: readonly UpstreamSettings[],
    call: UpstreamCall,
    signal: AbortSignal,
  ): Promise<BegunReply> {
    let cause: UpstreamFailure | undefined;
    for (const [i, guarded] of upstreams.entries()) {
      // Models can share an upstream and pay different prices there.
      call.progress.cost = settings[i]?.cost;
      const result = await this.#tryUpstream(guarded, call, signal);
      switch (result.kind) {
        case "replying":
          return result;
        case "failed":
          cause = result.failure;
          break;
        case "down":
          cause ??= new UpstreamFailure("unreachable", `the breaker of ${guarded.upstream.name} is open`);
          break;
        case "busy":
          break;
        default:
          result satisfies never;
      }
    }
    throw cause ? upstreamError(cause) : new DomainError("overloaded");
  }

  /** Sends the request again, after a wait, until a reply begins or the last attempt has failed. */
  async #tryUpstream(guarded: GuardedUpstream, call: UpstreamCall, signal: AbortSignal): Promise<Result> {
    const { limits, random, sleep } = this.#options;
    let failure: UpstreamFailure | undefined;
    for (let number = 1; ; number++) {
      const attempt = await guarded.start(call, number, signal);
      if (typeof attempt === "string") return failure ? { kind: "failed", failure } : { kind: attempt };
      try {
        return { kind: "replying", attempt, first: await attempt.next() };
      } catch (error) {
        if (!(error instanceof UpstreamFailure)) throw error;
        call.progress.wasSent = false;
        call.progress.report = undefined;
        failure = error;
      }
      const waitMs = backOffMs(limits.backOff, failure, number, random);
      if (waitMs === undefined) return { kind: "failed", failure };
      await sleep(waitMs, signal);
    }
  }
}

/** The upstreams that can get the prompt. The meter refuses a prompt that none can get. */
function usableUpstreams({ model, prompt }: UpstreamCall): readonly UpstreamSettings[] {
  const { upstreams } = model;
  const isUsable = (settings: UpstreamSettings) => !problemWith(settings, prompt, prompt.traits);
  return upstreams.every(isUsable) ? upstreams : upstreams.filter(isUsable);
}

function upstreamError(cause: UpstreamFailure): DomainError {
  return new DomainError("upstream_error", { cause });
}

type BegunReply = { readonly attempt: Attempt; readonly first: UpstreamEvent };

type ReplyOptions = {
  readonly signal: AbortSignal;
  readonly begin: (signal: AbortSignal) => Promise<BegunReply>;
  readonly errorOf: (error: unknown) => unknown;
  /** Called once after `begin`, when the reply has ended or is no longer read. */
  readonly release: () => Promise<void> | undefined;
};

type NextEvent = IteratorResult<UpstreamEvent, undefined>;

/** The abort reason when the reader stops. */
const STOPPED = Symbol("stopped");
const END = { done: true, value: undefined } as const;

/**
 * The events of one call. Not an async generator, which would create three promises more for each event. Unlike one, it does
 * not queue reads: call `next` only after the previous promise has settled.
 */
class ReplyEvents implements AsyncIterableIterator<UpstreamEvent, undefined> {
  readonly #options: ReplyOptions;
  /** Aborted by the call's signal, or when the reader stops. */
  readonly #stop = new AbortController();
  #state: "new" | "begun" | "complete" | "closed" = "new";
  #attempt: Attempt | undefined;
  #reading: Promise<NextEvent> | undefined;

  constructor(options: ReplyOptions) {
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<NextEvent> {
    const reading =
      this.#attempt && this.#state === "begun" ? this.#attempt.next().then(this.#onEvent, this.#onError) : this.#readFirst();
    this.#reading = reading;
    return reading;
  }

  /** Does not wait for the upstream's next event. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    if (this.#state !== "complete") this.#stop.abort(STOPPED);
    await this.#reading?.catch(() => undefined);
    await this.#close();
    return END;
  }

  /** After the end of the reply, this has nothing to read. */
  async #readFirst(): Promise<NextEvent> {
    if (this.#state !== "new") {
      await this.#close();
      return END;
    }
    const { signal, begin } = this.#options;
    signal.throwIfAborted();
    this.#state = "begun";
    signal.addEventListener("abort", this.#onAbort, { once: true });
    try {
      const { attempt, first } = await begin(this.#stop.signal);
      this.#attempt = attempt;
      return this.#onEvent(first);
    } catch (error) {
      return await this.#onError(error);
    }
  }

  readonly #onEvent = (value: UpstreamEvent): NextEvent => {
    if (value.kind === "done") this.#state = "complete";
    return { done: false, value };
  };

  readonly #onError = async (error: unknown): Promise<IteratorReturnResult<undefined>> => {
    await this.#close();
    const { signal } = this.#stop;
    if (signal.reason === STOPPED) return END;
    // After an abort, the reason of the abort takes precedence over the resulting error.
    signal.throwIfAborted();
    throw this.#options.errorOf(error);
  };

  readonly #onAbort = () => this.#stop.abort(this.#options.signal.reason);

  async #close(): Promise<void> {
    const state = this.#state;
    this.#state = "closed";
    if (state === "new" || state === "closed") return;
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    await this.#attempt?.close();
    await this.#options.release();
  }
}

/** A number above 0 and at most 1 for each upstream. */
type Draw = (upstream: UpstreamSettings) => number;

/**
 * The upstreams with a weight in a drawn order, then the others in theirs. Each weighted upstream is first with a
 * probability of its share of the weights. The same draws give the same order, and a changed weight moves only
 * calls from or to its upstream (weighted rendezvous hashing).
 */
export function orderOf(upstreams: readonly UpstreamSettings[], draw: Draw): readonly UpstreamSettings[] {
  const weighted: { upstream: UpstreamSettings; rank: number }[] = [];
  const others: UpstreamSettings[] = [];
  for (const upstream of upstreams) {
    const { weight } = upstream;
    if (weight === undefined) others.push(upstream);
    else weighted.push({ upstream, rank: -Math.log(draw(upstream)) / weight });
  }
  weighted.sort((one, other) => one.rank - other.rank);
  return [...weighted.map(({ upstream }) => upstream), ...others];
}

/** The same numbers on every server and after every restart, so that a retry uses the same upstream. */
export function drawByKey(accountId: string, idempotencyKey: string): Draw {
  return (upstream) => {
    const hash = createHash("sha256").update(JSON.stringify([accountId, idempotencyKey, addressOf(upstream)]));
    return (hash.digest().readUIntBE(0, 6) + 1) / 2 ** 48;
  };
}

/** What the upstream is, without settings that change how it is used. */
function addressOf(upstream: UpstreamSettings): readonly unknown[] {
  if (upstream.kind === "sandbox") return [upstream.kind, upstream.delayMs];
  return [upstream.kind, upstream.baseUrl, upstream.apiKeyEnv, upstream.model];
}

type BackOffOptions = {
  /** Maximum attempts per upstream and call. */
  readonly maxAttempts: number;
  readonly firstMs: number;
  readonly maxMs: number;
  /** A longer Retry-After ends the attempts at this upstream for this call. */
  readonly maxRetryAfterMs: number;
};

/** The wait before the next attempt at the same upstream; undefined if there is none. */
function backOffMs(
  { maxAttempts, firstMs, maxMs, maxRetryAfterMs }: BackOffOptions,
  failure: UpstreamFailure,
  attempts: number,
  random: () => number,
): number | undefined {
  const { mayRetry, retryAfterMs = 0 } = failure;
  if (!mayRetry || attempts >= maxAttempts || retryAfterMs > maxRetryAfterMs) return undefined;
  const longestMs = Math.min(firstMs * 2 ** (attempts - 1), maxMs);
  return retryAfterMs + longestMs * (0.5 + random() / 2);
}

type UpstreamStatus = {
  readonly name: string;
  readonly running: number;
  readonly waiting: number;
  readonly breaker: CircuitState;
  readonly openAccounts: number;
};

/** The upstreams of the catalog, and those that running calls still use. */
class UpstreamSet {
  readonly #open: (settings: UpstreamSettings) => GuardedUpstream;
  readonly #byIdentity = new Map<string, GuardedUpstream>();
  #catalog: ReadonlySet<GuardedUpstream> = new Set();

  constructor(open: (settings: UpstreamSettings) => GuardedUpstream) {
    this.#open = open;
  }

  /**
   * Opens the upstreams of a catalog, and reads the keys of those that are open again. If one cannot be opened or its key
   * cannot be read, this throws, and the current catalog and keys stay in use. Upstreams that are no longer in it close after their last call.
   */
  async replaceCatalog(settings: readonly UpstreamSettings[]): Promise<void> {
    const catalog = new Set(settings.map((one) => this.#find(one)));
    const renewals = [...catalog].map(({ upstream }) => upstream.prepareKey?.());
    for (const renew of renewals) renew?.();
    this.#catalog = catalog;
    await this.#closeUnused([...this.#byIdentity.values()]);
  }

  /** The upstreams for a call, in the same order. They stay open until they are released. */
  acquire(settings: readonly UpstreamSettings[]): readonly GuardedUpstream[] {
    const upstreams = settings.map((one) => this.#find(one));
    for (const guarded of upstreams) guarded.users++;
    return upstreams;
  }

  /** Returns a promise if an upstream closes. */
  release(upstreams: readonly GuardedUpstream[]): Promise<void> | undefined {
    for (const guarded of upstreams) guarded.users--;
    return this.#closeUnused(upstreams);
  }

  status(): UpstreamStatus[] {
    return [...this.#byIdentity.values()].map(({ upstream, slots, breaker }) => ({
      name: upstream.name,
      running: slots.running,
      waiting: slots.waiting,
      breaker: breaker.state,
      openAccounts: breaker.openAccounts,
    }));
  }

  #find(settings: UpstreamSettings): GuardedUpstream {
    const identity = identityOf(settings);
    const known = this.#byIdentity.get(identity);
    if (known) return known;
    const guarded = this.#open(settings);
    this.#byIdentity.set(identity, guarded);
    return guarded;
  }

  #closeUnused(upstreams: readonly GuardedUpstream[]): Promise<void> | undefined {
    if (upstreams.every((guarded) => this.#isUsed(guarded))) return undefined;
    return this.#close(upstreams.filter((guarded) => !this.#isUsed(guarded)));
  }

  #isUsed(guarded: GuardedUpstream): boolean {
    return this.#catalog.has(guarded) || guarded.users > 0;
  }

  async #close(unused: readonly GuardedUpstream[]): Promise<void> {
    for (const [identity, guarded] of this.#byIdentity) {
      if (unused.includes(guarded)) this.#byIdentity.delete(identity);
    }
    await Promise.all(unused.map(({ upstream }) => upstream.close()));
  }
}

const identities = new WeakMap<UpstreamSettings, string>();

/** Models with the same settings share an upstream. */
function identityOf(settings: UpstreamSettings): string {
  let identity = identities.get(settings);
  if (identity === undefined) {
    identity = joinIdentity(settings);
    identities.set(settings, identity);
  }
  return identity;
}

function joinIdentity(settings: UpstreamSettings): string {
  if (settings.kind === "sandbox") return `sandbox ${settings.delayMs}`;
  const { kind, baseUrl, apiKeyEnv, apiKeyFile, model, timeoutMs } = settings;
  return JSON.stringify([kind, baseUrl, apiKeyEnv, apiKeyFile, timeoutMs, model]);
}
