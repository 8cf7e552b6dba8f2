import { measured } from "../domain/call-trace.ts";
import { DomainError } from "../domain/errors.ts";
import type { Ids } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Model } from "../domain/model.ts";
import { deltasOf } from "../domain/output.ts";
import type { CountOptions } from "../domain/prompt.ts";
import type { AdmittedKey } from "../keys/admit.ts";
import type { PriceLists } from "../prices/store.ts";
import type { HoldRequest, MinuteLimit } from "./bill-statement.ts";
import type { GenerationSpec } from "./charge.ts";
import { checkRequest, checkStorable, isAllowed } from "./check-request.ts";
import { Generation, type GenerationDeps, GenerationStream } from "./generation.ts";
import type { Caller, GenerationRequest, Idempotency, PieceStream, Reply } from "./generation-request.ts";
import { countInput, imageTokensOf, loweredMaxTokensOf, type Size } from "./generation-size.ts";
import {
  type HoldDeps,
  MAX_CALL_MS,
  type PendingGeneration,
  placeHold,
  type Quote,
  type QuoteCaller,
  type QuoteDeps,
  quoteOf,
} from "./hold.ts";
import { modelNotAllowed, unknownModel } from "./refusals.ts";
import { decodeAnswer, interrupted, type StoredAnswer } from "./stored-answer.ts";

type MeterDeps = GenerationDeps &
  HoldDeps &
  QuoteDeps & {
    readonly models: { get(id: string): Model | undefined; list(): readonly Model[] };
    readonly findAnswer: (accountId: string, idempotencyKey: string) => Promise<string | undefined>;
    readonly findEntry: (accountId: string, generationId: string) => Promise<PaidEntry | undefined>;
    readonly ids: Pick<Ids, "generation">;
    readonly priceLists: Pick<PriceLists, "modelFor">;
  };

/** What a reply has from its ledger row. */
export type PaidEntry = Pick<Reply, "model" | "usage" | "costMicros" | "balanceMicros">;

/** The reply of an earlier call with the same idempotency key. */
type Replay = { readonly reply: Reply; readonly failure: StoredAnswer["failure"] };

/** How often a key may change while the hold of one call is placed. */
const MAX_REPEATS = 6;

/** Holds, runs and settles generations. No other component calls an upstream. */
export class Meter {
  readonly #deps: MeterDeps;

  constructor(deps: MeterDeps) {
    this.#deps = deps;
  }

  /** What a call with this request would hold. Neither calls an upstream nor holds anything. */
  async quote(request: GenerationRequest, caller: QuoteCaller): Promise<Quote> {
    return await quoteOf(await this.#modelOf(caller.key, request), request, caller, this.#deps);
  }

  async complete(caller: Caller, request: GenerationRequest): Promise<Reply> {
    const started = await this.#start(caller, request, false);
    if (!(started instanceof Generation)) {
      if (started.failure) throw interrupted(started.failure);
      return started.reply;
    }
    while ((await started.nextDelta()) !== undefined);
    return await started.reply();
  }

  /** Resolves when the generation is held and starts, or has the reply of an earlier one. */
  async stream(caller: Caller, request: GenerationRequest): Promise<PieceStream> {
    const started = await this.#start(caller, request, true);
    return started instanceof Generation ? new GenerationStream(started) : replayedPieces(started);
  }

  /** The number of input tokens of a request that is not run. Images count with their maximum. */
  async countInput(key: AdmittedKey, request: GenerationRequest, options: CountOptions): Promise<number> {
    const model = await this.#modelOf(key, request);
    await checkRequest(model, request);
    // Counting stops at the context window: the work of a call that is free must have a limit.
    const { promptTokens } = await countInput(model, request, this.#deps.tokens, options);
    return promptTokens + imageTokensOf(model, request);
  }

  /** The hold proves that the call may still run: its request may have arrived long after it was admitted. */
  async #start(caller: Caller, request: GenerationRequest, streamed: boolean): Promise<Generation | Replay> {
    let admitted = caller;
    for (let repeats = 0; ; repeats++) {
      const started = await this.#startAdmitted(admitted, request, streamed);
      if (started) return started;
      if (repeats === MAX_REPEATS) throw new DomainError("unavailable");
      admitted = { ...caller, key: await caller.readmit() };
    }
  }

  /** Undefined if the key or the prices of the account have changed since the call was admitted. */
  async #startAdmitted(caller: Caller, request: GenerationRequest, streamed: boolean): Promise<Generation | Replay | undefined> {
    const { running, ids } = this.#deps;
    const { accountId } = caller.key;
    const known = this.#deps.models.get(request.model);
    if (known) caller.onModel(known.id);
    const priced = this.#modelOf(caller.key, request);
    const model = priced instanceof Promise ? await priced : priced;
    running.reserve(accountId);
    let generation: Generation | undefined;
    try {
      const checking = checkRequest(model, request);
      if (checking !== undefined) await checking;
      const id = ids.generation(laneOfId(accountId));
      const idempotency = caller.idempotency && (await idempotencyOf(caller.idempotency, request));
      const pending = { id, caller, request, model, idempotency };
      const placed = await measured(caller.trace?.startStage("hold"), placeHold(this.#deps, pending));
      if (placed.kind === "answered") return await this.#replay(caller);
      if (placed.kind === "outdated") return undefined;
      generation = this.#launch(specOf(pending, placed.size, streamed), caller, placed.minuteLimits);
      return generation;
    } finally {
      if (!generation) running.release(accountId);
    }
  }

  #modelOf(key: QuoteCaller["key"], { model: id }: GenerationRequest): Model | Promise<Model> {
    const model = this.#deps.models.get(id);
    if (!model)
      throw unknownModel(
        id,
        this.#deps.models.list().filter((one) => isAllowed(key, one)),
      );
    if (!isAllowed(key, model)) throw modelNotAllowed(key, model);
    return this.#deps.priceLists.modelFor(key, model);
  }

  #launch(spec: GenerationSpec, caller: Caller, minuteLimits: readonly MinuteLimit[]): Generation {
    const { running } = this.#deps;
    const generation = new Generation(spec, this.#deps);
    caller.onStart({ generation, loweredMaxTokens: spec.loweredMaxTokens, minuteLimits });
    const slot = running.register(generation);
    const stopWatching = watchEnd(generation, caller);
    generation.onSettled(() => {
      stopWatching();
      running.unregister(slot);
      running.release(spec.key.accountId);
    });
    return generation;
  }

  async #replay(caller: Caller): Promise<Replay> {
    const { key, idempotency } = caller;
    const answer = await this.#deps.findAnswer(key.accountId, idempotency?.key ?? "");
    // The stored answer has expired; a retry generates again.
    if (answer === undefined) throw new DomainError("unavailable");
    const { failure, ...stored } = decodeAnswer(answer);
    const entry = await this.#deps.findEntry(key.accountId, stored.id);
    if (!entry) throw new DomainError("internal", { cause: new Error(`no ledger row for ${stored.id}`) });
    const { loweredMaxTokens } = stored;
    caller.onStart({ generation: undefined, loweredMaxTokens, minuteLimits: [] });
    return { reply: { ...stored, ...entry }, failure };
  }
}

async function* replayedPieces({ reply, failure }: Replay): PieceStream {
  const { id, model, output } = reply;
  for (const delta of deltasOf(output)) yield { kind: "delta", id, model, delta };
  if (failure) throw interrupted(failure);
  yield { kind: "reply", reply };
}

/** Ends the generation when its caller disconnects, or when it reaches the time limit. */
function watchEnd(generation: Generation, { signal, endReason }: Caller): () => void {
  const onAbort = () => {
    const why = endReason();
    switch (why) {
      case "unavailable":
        return generation.stop(why);
      case "disconnected":
        return generation.detach(why, signal.reason);
      case "deadline_exceeded":
        return generation.detach(why);
    }
  };
  const timer = setTimeout(() => generation.stop("too_long"), MAX_CALL_MS);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  };
}

function specOf({ id, caller, request, model, idempotency }: PendingGeneration, size: Size, streamed: boolean): GenerationSpec {
  return {
    id,
    key: caller.key,
    requestId: caller.requestId,
    trace: caller.trace,
    user: request.user,
    model,
    prompt: { ...request, maxTokens: size.maxTokens, traits: model, streamed },
    size,
    loweredMaxTokens: loweredMaxTokensOf(model, request, size),
    idempotencyKey: idempotency?.key,
  };
}

async function idempotencyOf({ key, digest }: Idempotency, request: GenerationRequest): Promise<HoldRequest["idempotency"]> {
  checkStorable(request);
  return { key, digest: await digest() };
}
