import { DomainError, type Reason } from "../domain/errors.ts";
import type { Ids } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Model } from "../domain/model.ts";
import type { Billing, HoldOutcome } from "../store/billing.ts";
import type { Caller } from "./caller.ts";
import { Generation, type GenerationParts, type Order } from "./generation.ts";
import type { GenerationRequest, Piece, Reply } from "./generation-request.ts";
import { countedSize, leastSize, type Size, sizeOf, sizeWithin } from "./generation-size.ts";
import { digestOf } from "./payload-digest.ts";
import { insufficientBalance, unknownModel } from "./refusals.ts";
import type { RunningGenerations } from "./running-generations.ts";
import { decodeAnswer, interrupted, type StoredAnswer } from "./stored-answer.ts";

/** A hold outlives the longest call plus its settlement retries. */
const MAX_CALL_MS = 600_000;
const HOLD_SECONDS = 720;

type MeterParts = GenerationParts & {
  readonly models: { get(id: string): Model | undefined };
  readonly billing: Billing;
  readonly findEntry: (accountId: string, generationId: string) => Promise<PaidEntry | undefined>;
  readonly running: RunningGenerations;
  readonly ids: Pick<Ids, "generation">;
};

/** The parts of a reply that come from its ledger row. */
export type PaidEntry = Pick<Reply, "model" | "usage" | "costMicros" | "balanceMicros">;

type Idempotency = { readonly key: string; readonly digest: string };

type Replay = { readonly reply: Reply; readonly failure: Reason | undefined };

/** Holds, runs and settles generations. No other component calls an upstream. */
export class Meter {
  readonly #parts: MeterParts;

  constructor(parts: MeterParts) {
    this.#parts = parts;
  }

  async complete(caller: Caller, request: GenerationRequest): Promise<Reply> {
    const started = await this.#start(caller, request, false);
    if (!(started instanceof Generation)) {
      if (started.failure) throw interrupted(started.failure);
      return started.reply;
    }
    while ((await started.next()) !== undefined);
    return await started.finish();
  }

  async *stream(caller: Caller, request: GenerationRequest): AsyncGenerator<Piece, void> {
    const started = await this.#start(caller, request, true);
    if (!(started instanceof Generation)) {
      const { id, content } = started.reply;
      if (content !== "") yield { kind: "delta", id, content };
      if (started.failure) throw interrupted(started.failure);
      yield { kind: "reply", reply: started.reply };
      return;
    }
    try {
      for (let piece = await started.next(); piece !== undefined; piece = await started.next()) {
        yield { kind: "delta", id: started.order.id, content: piece };
      }
      yield { kind: "reply", reply: await started.finish() };
    } finally {
      // Has an effect only if the reader stopped before the end.
      started.leave("gone");
    }
  }

  async #start(caller: Caller, request: GenerationRequest, streamed: boolean): Promise<Generation | Replay> {
    const { running, ids, models } = this.#parts;
    const { key } = caller;
    const model = models.get(request.model);
    if (!model) throw unknownModel(request.model);
    caller.onModel(model.id);
    running.reserve(key.accountId);
    try {
      const idempotency = await idempotencyOf(caller, request);
      const held = await this.#hold(
        caller,
        request,
        model,
        ids.generation(laneOfId(key.accountId)),
        idempotency,
      );
      if (!("size" in held)) {
        running.release(key.accountId);
        return held;
      }
      const order: Order = {
        ...held,
        key,
        requestId: caller.requestId,
        model,
        prompt: { ...request, maxTokens: held.size.maxTokens },
        streamed,
        kept: idempotency !== undefined,
      };
      return this.#launch(order, caller);
    } catch (error) {
      running.release(key.accountId);
      throw error;
    }
  }

  #launch(order: Order, caller: Caller): Generation {
    const { signal } = caller;
    const { running } = this.#parts;
    const generation = new Generation(order, this.#parts);
    caller.onStart(generation);
    const place = running.enter(generation);
    const onAbort = () => {
      const why = caller.endReason();
      if (why === "unavailable") generation.stop(why);
      else if (why === "gone") generation.leave(why, signal.reason);
      else generation.leave(why);
    };
    const timer = setTimeout(() => generation.stop("too_long"), MAX_CALL_MS);
    generation.onSettled(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      running.leave(place);
      running.release(order.key.accountId);
    });
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    return generation;
  }

  /**
   * Places the hold. If it does not fit the balance, the input is counted, then a default output limit is
   * lowered. Only the statement that places the hold decides, because a balance that was read earlier may be
   * out of date.
   */
  async #hold(
    caller: Caller,
    request: GenerationRequest,
    model: Model,
    id: string,
    idempotency: Idempotency | undefined,
  ): Promise<{ readonly id: string; readonly size: Size } | Replay> {
    const { key, signal } = caller;
    const place = async (size: Size): Promise<HoldOutcome> => {
      const hold = {
        holdId: id,
        accountId: key.accountId,
        keyId: key.keyId,
        seconds: HOLD_SECONDS,
        idempotency,
      };
      try {
        return await this.#parts.billing.hold({ ...hold, amountMicros: size.amountMicros });
      } catch (error) {
        // A statement that was sent may have placed the hold although its reply was lost, so the hold is
        // released.
        if (!isOverloaded(error)) this.#parts.running.during(this.#parts.settler.abandon(hold));
        throw error;
      }
    };
    const { tokens } = this.#parts;
    let size = await sizeOf(model, request, key, tokens, signal);
    let held = await place(size);
    if (held.outcome === "insufficient" && !size.counted) {
      size = await countedSize(model, request, tokens, { signal, payer: key.accountId });
      held = await place(size);
    }
    // Another call may take the funds in between, so the last attempt uses the lowest limit.
    for (const lower of [sizeWithin, leastSize]) {
      if (held.outcome !== "insufficient" || size.maxTokens === size.leastTokens) break;
      const availableMicros = held.balanceMicros - held.heldMicros;
      size = lower(model, size, availableMicros);
      if (size.amountMicros <= availableMicros) held = await place(size);
    }
    switch (held.outcome) {
      case "held":
        return { id, size };
      case "answered":
        return await this.#replay(caller, decodeAnswer(held.answer));
      case "insufficient":
        throw insufficientBalance(held.balanceMicros, held.heldMicros, size.amountMicros);
      case "revoked":
        throw new DomainError("revoked_api_key");
      case "running":
        throw new DomainError("idempotency_in_progress", { retryAfterSeconds: 1 });
      case "reused":
        throw new DomainError("idempotency_key_reused");
    }
  }

  async #replay(caller: Caller, { id, content, finishReason, failure }: StoredAnswer): Promise<Replay> {
    const entry = await this.#parts.findEntry(caller.key.accountId, id);
    if (!entry) throw new DomainError("internal", { cause: new Error(`no ledger row for ${id}`) });
    caller.onReplay();
    return { reply: { id, content, finishReason, ...entry }, failure };
  }
}

function isOverloaded(error: unknown): boolean {
  return error instanceof DomainError && error.reason === "overloaded";
}

async function idempotencyOf(caller: Caller, request: GenerationRequest): Promise<Idempotency | undefined> {
  const { idempotencyKey: key, method } = caller;
  return key === undefined ? undefined : { key, digest: await digestOf(method, request) };
}
