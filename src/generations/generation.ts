import { measured } from "../domain/call-trace.ts";
import { DomainError } from "../domain/errors.ts";
import { FairShare } from "../domain/fairness.ts";
import { assertInvariant } from "../domain/invariant.ts";
import { type Delta, type Output, OutputBuilder } from "../domain/output.ts";
import { SlotArray } from "../domain/slot-array.ts";
import { Progress, type UpstreamCall, type UpstreamEnd, type UpstreamEvent } from "../upstreams/upstream.ts";
import type { Charge, EndOutcome } from "./bill-statement.ts";
import type { Settler } from "./billing.ts";
import { chargeOf, type Ending, type GenerationSpec, isDelivered, STOPS, type Stop } from "./charge.ts";
import type { Piece, PieceStream, Reply } from "./generation-request.ts";
import type { Tokens } from "./generation-size.ts";

export type GenerationState =
  | { readonly kind: "running" }
  /** The reader disconnected, or its deadline passed; the generation continues, for a retry with the same idempotency key. */
  | { readonly kind: "detached" }
  | { readonly kind: "settling" }
  /** The hold has ended. The charge is undefined if nothing was charged. */
  | { readonly kind: "settled"; readonly charge: Charge | undefined }
  /** The hold could not be ended; another server releases it. */
  | { readonly kind: "unsettled" };

type Kind = GenerationState["kind"];

const NEXT: Readonly<Record<Kind, readonly Kind[]>> = {
  running: ["detached", "settling"],
  detached: ["settling"],
  settling: ["settled", "unsettled"],
  settled: [],
  unsettled: [],
};

export function canBecome(from: Kind, to: Kind): boolean {
  return NEXT[from].includes(to);
}

export type GenerationDeps = {
  readonly streamEvents: (call: UpstreamCall) => AsyncIterable<UpstreamEvent>;
  readonly settler: Settler;
  readonly tokens: Tokens;
};

/**
 * A generation with a hold. It is settled exactly once, however it ends, and before the reader gets the last
 * part of the response.
 */
export class Generation {
  readonly spec: GenerationSpec;
  readonly #deps: GenerationDeps;
  readonly #upstream = new AbortController();
  readonly #progress = new Progress();
  readonly #events: AsyncIterator<UpstreamEvent>;
  readonly #builder = new OutputBuilder();
  /** The last read. A reader that disconnects leaves it pending. */
  #reading: Promise<Delta | undefined> | undefined;
  #state: GenerationState = { kind: "running" };
  /** What the reader gets after the pieces. The first outcome counts. */
  readonly #reply = Promise.withResolvers<Reply>();
  #wakeReader: (() => void) | undefined;
  readonly #onSettled: (() => void)[] = [];

  constructor(spec: GenerationSpec, deps: GenerationDeps) {
    this.spec = spec;
    this.#deps = deps;
    const { model, prompt, requestId, key, idempotencyKey, trace } = spec;
    const events = deps.streamEvents({
      model,
      prompt,
      requestId,
      idempotencyKey,
      accountId: key.accountId,
      trace,
      signal: this.#upstream.signal,
      progress: this.#progress,
    });
    this.#events = events[Symbol.asyncIterator]();
    // Prevents an unhandled rejection if a detached reader never reads the reply; the settler logs errors.
    this.#reply.promise.catch(() => undefined);
  }

  /** Returns the next piece, or undefined when the reader gets no more pieces for any reason. */
  nextDelta(): Promise<Delta | undefined> {
    if (this.#state.kind !== "running") return Promise.resolve(undefined);
    const read = this.#readDelta();
    if (this.spec.idempotencyKey === undefined) return read;
    const detached = Promise.withResolvers<undefined>();
    this.#wakeReader = () => detached.resolve(undefined);
    return Promise.race([read, detached.promise]);
  }

  /** After the last piece: the reply, once it is charged, or the reason why there is none. */
  reply(): Promise<Reply> {
    return this.#reply.promise;
  }

  /** Stops the upstream and settles the text produced so far, even if no reader waits for the next piece. */
  stop(why: Stop, error: unknown = stopError(why)): void {
    if (this.#isRunning()) this.#end({ kind: "stopped", why, error });
  }

  /**
   * Ends the reader's stream. A generation whose answer is stored continues, for a retry with the same
   * idempotency key; any other stops.
   */
  detach(why: "disconnected" | "deadline_exceeded", error: unknown = stopError(why)): void {
    if (this.spec.idempotencyKey === undefined) {
      this.stop(why, error);
      return;
    }
    if (this.#state.kind !== "running") return;
    this.#become({ kind: "detached" });
    this.#reply.reject(error);
    this.#wakeReader?.();
    void this.#readToEnd();
  }

  get id(): string {
    return this.spec.id;
  }

  /** The last upstream that received the prompt; undefined if none did. */
  get upstream(): string | undefined {
    return this.#progress.upstream;
  }

  /** The charge in the ledger; undefined until it is settled, and if nothing is charged. */
  get charge(): Charge | undefined {
    return this.#state.kind === "settled" ? this.#state.charge : undefined;
  }

  /**
   * Calls the listener once, when the hold has ended or its settlement has failed; immediately if it already
   * has.
   */
  onSettled(listener: () => void): void {
    if (this.#state.kind === "settled" || this.#state.kind === "unsettled") listener();
    else this.#onSettled.push(listener);
  }

  #isRunning(): boolean {
    return this.#state.kind === "running" || this.#state.kind === "detached";
  }

  #become(next: GenerationState): void {
    assertInvariant(canBecome(this.#state.kind, next.kind), "a generation makes only allowed changes of state", {
      generation: this.spec.id,
      from: this.#state.kind,
      to: next.kind,
    });
    this.#state = next;
  }

  /** The iterator of the events allows one read at a time, so this first waits for the read that the former reader started. */
  async #readToEnd(): Promise<void> {
    let reading = this.#reading ?? this.#readDelta();
    while ((await reading) !== undefined) reading = this.#readDelta();
  }

  /** Not an async function, which would create two objects more for each piece. */
  #readDelta(): Promise<Delta | undefined> {
    this.#reading = this.#events.next().then(this.#onEvent, this.#onFailure);
    return this.#reading;
  }

  readonly #onEvent = ({ value, done }: IteratorResult<UpstreamEvent>): Delta | undefined => {
    if (!this.#isRunning()) return undefined;
    try {
      if (done) throw new DomainError("upstream_error", { cause: new Error("the events of the upstream have no end") });
      if (value.kind !== "done") {
        this.#builder.append(value);
        return value;
      }
      const stopSequence = stopSequenceOf(value, this.spec.prompt.stop, this.#builder.output.text);
      this.#end({ kind: "completed", done: { ...value, stopSequence } });
    } catch (error) {
      this.#onFailure(error);
    }
    return undefined;
  };

  readonly #onFailure = (error: unknown): undefined => {
    if (this.#isRunning()) this.#end({ kind: "failed", error });
  };

  #end(ending: Ending): void {
    this.#become({ kind: "settling" });
    if (ending.kind === "stopped") this.#upstream.abort();
    // An upstream that waits for its reader would keep its connection open.
    this.#events.return?.().catch(() => undefined);
    void this.#settle(ending);
  }

  async #settle(ending: Ending): Promise<void> {
    const { settler, tokens } = this.#deps;
    const { id: generationId, key, trace } = this.spec;
    const { output } = this.#builder;
    try {
      const stopped = { spec: this.spec, ending, progress: this.#progress, output };
      const charging = chargeOf(stopped, tokens);
      const charge = charging instanceof Promise ? await charging : charging;
      const end = { generationId, accountId: key.accountId, charge };
      const refuse = (error: unknown) =>
        this.#reply.reject(ending.kind === "completed" || charge !== undefined ? refused(error) : ending.error);
      const giveUp = isDelivered(stopped) ? undefined : refuse;
      const ended = await measured(trace?.startStage("settlement"), settler.end(end, giveUp));
      this.#become({ kind: "settled", charge: ended.outcome === "settled" ? charge : undefined });
      this.#answer(ending, output, charge, ended);
    } catch (error) {
      this.#become({ kind: "unsettled" });
      this.#reply.reject(error);
    }
    for (const listener of this.#onSettled) listener();
  }

  #answer(ending: Ending, output: Output, charge: Charge | undefined, ended: EndOutcome): void {
    if (ending.kind !== "completed") {
      this.#reply.reject(ending.error);
    } else if (!charge || ended.outcome !== "settled") {
      const message = "The hold of the call expired before the call ended. Nothing was charged.";
      this.#reply.reject(new DomainError("unavailable", { message }));
    } else {
      const { finishReason, stopSequence, vectors } = ending.done;
      this.#reply.resolve({
        id: this.spec.id,
        model: this.spec.model.id,
        output,
        vectors,
        finishReason,
        loweredMaxTokens: this.spec.loweredMaxTokens,
        stopSequence,
        usage: charge.usage,
        costMicros: charge.amountMicros,
        balanceMicros: ended.balanceMicros,
      });
    }
  }
}

/**
 * The stop text that ended the reply. Many upstreams report only "stop" for it: those that do not remove it leave it at
 * the end of the text.
 */
function stopSequenceOf(
  { finishReason, stopSequence: reported }: UpstreamEnd,
  stop: readonly string[],
  text: string,
): string | null | undefined {
  if (finishReason !== "stop") return undefined;
  if (typeof reported === "string" && stop.includes(reported)) return reported;
  const kept = stop.filter((one) => one !== "" && text.endsWith(one)).sort((a, b) => b.length - a.length);
  return kept[0] ?? (reported === null ? null : undefined);
}

function refused(cause: unknown): DomainError {
  const message = "The database accepts no writes at the moment. Nothing was charged. Retry later.";
  return new DomainError("unavailable", { message, cause });
}

function stopError(why: Stop): DomainError {
  const { reason, message } = STOPS[why];
  return new DomainError(reason, { message });
}

type Result = IteratorResult<Piece, undefined>;

const END = { done: true, value: undefined } as const;

/** The pieces of a generation, then its reply. Not an async generator: see MappedStream. */
export class GenerationStream implements PieceStream {
  readonly #generation: Generation;
  #isEnded = false;

  constructor(generation: Generation) {
    this.#generation = generation;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    return this.#isEnded ? Promise.resolve(END) : this.#generation.nextDelta().then(this.#onDelta);
  }

  /**
   * Called when the reader stops before the end. Usually the signal of the call has already ended the generation. If a fault of the
   * server stops the reader, the generation is charged like one whose caller disconnected: its output was produced.
   */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isEnded = true;
    this.#generation.detach("disconnected");
    return END;
  }

  readonly #onDelta = (delta: Delta | undefined): Result | Promise<Result> => {
    if (this.#isEnded) return END;
    if (delta === undefined) return this.#readReply();
    const { id, spec } = this.#generation;
    return { done: false, value: { kind: "delta", id, model: spec.model.id, delta } };
  };

  async #readReply(): Promise<Result> {
    this.#isEnded = true;
    return { done: false, value: { kind: "reply", reply: await this.#generation.reply() } };
  }
}

/** The generations of this server that run or are being settled. */
export class RunningGenerations {
  readonly #max: number;
  readonly #generations = new SlotArray<Generation>();
  readonly #idleListeners = new Set<() => void>();
  /** Slots per account, so that no account can use all of them. */
  readonly #slots = new FairShare();
  #isStopped = false;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#slots.inUse;
  }

  /** Takes a slot for a generation before its hold is placed; throws overloaded if there is none. */
  reserve(accountId: string): void {
    if (this.#isStopped) throw new DomainError("unavailable");
    if (!this.#slots.acquire(accountId, 1, this.#max)) throw new DomainError("overloaded");
  }

  release(accountId: string | undefined): void {
    this.#slots.release(accountId, 1);
    if (this.count > 0) return;
    for (const resolve of this.#idleListeners) resolve();
    this.#idleListeners.clear();
  }

  /** Returns the number to pass to `unregister` after settlement. */
  register(generation: Generation): number {
    const slot = this.#generations.insert(generation);
    // The server was stopped while the hold was being placed.
    if (this.#isStopped) generation.stop("unavailable");
    return slot;
  }

  unregister(slot: number): void {
    this.#generations.remove(slot);
  }

  /** Whether any registered generation is of such an account. */
  hasAny(matches: (accountId: string) => boolean): boolean {
    for (const { spec } of this.#generations) if (matches(spec.key.accountId)) return true;
    return false;
  }

  /** Stops the streams of keys that may no longer generate. Unary calls run to their end. */
  stopStreams(reasons: ReadonlyMap<string, Stop>): void {
    for (const generation of this.#generations) {
      const { prompt, key } = generation.spec;
      const reason = reasons.get(key.keyId);
      if (prompt.streamed && reason !== undefined) generation.stop(reason);
    }
  }

  /** Delays the end of the server until the work has ended. Its errors are handled elsewhere. */
  waitFor(work: Promise<unknown>): void {
    this.#slots.acquire(undefined, 1, Number.POSITIVE_INFINITY);
    work.catch(() => undefined).finally(() => this.release(undefined));
  }

  /** Stops all running generations and refuses new ones. */
  stopAll(): void {
    this.#isStopped = true;
    for (const generation of this.#generations) generation.stop("unavailable");
  }

  /** Resolves when all generations have ended and are settled. */
  whenIdle(): Promise<void> {
    if (this.count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleListeners.add(resolve));
  }
}
