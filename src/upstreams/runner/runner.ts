import { DomainError } from "../../domain/errors.ts";
import type { Model, UpstreamSettings } from "../../domain/model.ts";
import { problemWith } from "../dialects.ts";
import type { Upstream, UpstreamEvent } from "../upstream.ts";
import type { UpstreamCall } from "../upstream-call.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import type { OnReport } from "./attempt.ts";
import { backOffMs } from "./back-off.ts";
import type { CircuitTools } from "./circuit.ts";
import { GuardedUpstream } from "./guarded-upstream.ts";
import { type BegunReply, ReplyEvents } from "./reply-events.ts";
import type { RunnerLimits } from "./runner-limits.ts";
import { drawByKey, orderOf } from "./upstream-order.ts";
import { UpstreamSet } from "./upstream-set.ts";

type RunnerOptions = CircuitTools & {
  readonly limits: RunnerLimits;
  readonly open: (settings: UpstreamSettings) => Upstream;
  /** Throws when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly onReport: OnReport;
};

/** The result of all attempts at one upstream. */
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
        upstreams = this.#upstreams.acquire(this.#orderedUpstreams(call));
        return this.#startReply(upstreams, call, signal);
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
    call: UpstreamCall,
    signal: AbortSignal,
  ): Promise<BegunReply> {
    let cause: UpstreamFailure | undefined;
    for (const guarded of upstreams) {
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

/** Those that can get the prompt. The meter refuses a prompt that none can get. */
function usableUpstreams({ model, prompt }: UpstreamCall): readonly UpstreamSettings[] {
  const { upstreams } = model;
  const isUsable = (settings: UpstreamSettings) => !problemWith(settings, prompt, prompt.traits);
  return upstreams.every(isUsable) ? upstreams : upstreams.filter(isUsable);
}

function upstreamError(cause: UpstreamFailure): DomainError {
  return new DomainError("upstream_error", { cause });
}
