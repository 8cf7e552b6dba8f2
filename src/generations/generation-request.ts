import type { CallTrace } from "../domain/call-trace.ts";
import type { Micros } from "../domain/money.ts";
import type { Delta, FinishReason, Output } from "../domain/output.ts";
import type { Usage } from "../domain/price.ts";
import type { Format, PromptMessage, PromptOptions } from "../domain/prompt.ts";
import type { AdmittedKey } from "../keys/admit.ts";
import type { Charge, MinuteLimit } from "./bill-statement.ts";

/** A request for a generation, the same for every API. */
export type GenerationRequest = {
  readonly format: Format;
  readonly model: string;
  readonly messages: readonly PromptMessage[];
  /** The field of each message, for errors; undefined if they are `messages[0]`, `messages[1]` and so on. */
  readonly fields?: readonly string[];
  /** The limit that the caller requested; the model and its context window may lower it. */
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly stop: readonly string[];
  readonly options: PromptOptions;
  /** The caller's end user, for the ledger; empty if unknown. */
  readonly user: string;
  /** The maximum cost; the output limit is lowered until it fits. */
  readonly maxCostMicros: Micros | undefined;
};

/** A generation that has ended and is charged. */
export type Reply = {
  readonly id: string;
  readonly model: string;
  readonly output: Output;
  /** Only for the task "embed": a vector for each message, in their order. */
  readonly vectors?: readonly Float32Array[] | undefined;
  readonly finishReason: FinishReason;
  /** The output limit, if it is lower than the call asked for. */
  readonly loweredMaxTokens: number | undefined;
  /** The stop text that ended the reply; undefined if none is known to have, null if it is not known which. */
  readonly stopSequence?: string | null | undefined;
  readonly usage: Usage;
  readonly costMicros: Micros;
  readonly balanceMicros: Micros;
};

/** An event of a streamed generation: pieces, then the reply. */
export type Piece =
  | { readonly kind: "delta"; readonly id: string; readonly model: string; readonly delta: Delta }
  | { readonly kind: "reply"; readonly reply: Reply };

/** The pieces of a stream, then the reply. A reader that stops before the end must call `return`. */
export type PieceStream = AsyncIterableIterator<Piece, undefined> & {
  return(value?: undefined): Promise<IteratorResult<Piece, undefined>>;
};

/** The caller of a generation and the events that can end it early, the same in every protocol. */
export type Caller = {
  readonly requestId: string;
  /** Undefined if the caller names no trace and this server exports none. */
  readonly trace: CallTrace | undefined;
  readonly key: AdmittedKey;
  /** Admits the call again, without a slot of the window. Throws the error that a new call would get. */
  readonly readmit: () => Promise<AdmittedKey>;
  readonly idempotency: Idempotency | undefined;
  /** Aborted when the caller disconnects, its deadline passes, or the server stops. */
  readonly signal: AbortSignal;
  /** Why the signal was aborted. */
  readonly endReason: () => "deadline_exceeded" | "unavailable" | "disconnected";
  /** Called once the model is known. */
  readonly onModel: (modelId: string) => void;
  /** Called before the reply, when the generation starts or an earlier one is replayed. */
  readonly onStart: (start: GenerationStart) => void;
};

/** What is known of a generation before its reply. */
export type GenerationStart = {
  /** Undefined if an earlier response is replayed. */
  readonly generation: StartedGeneration | undefined;
  /** The output limit, if it is lower than the call asked for. */
  readonly loweredMaxTokens: number | undefined;
  /** The minute limits that apply to the call. */
  readonly minuteLimits: readonly MinuteLimit[];
};

export type Idempotency = {
  readonly key: string;
  /** The digest of the method and of the whole request: another request with the same key is refused. */
  readonly digest: () => Promise<string>;
};

/** The fields of a generation in the log line of its call. */
export type StartedGeneration = {
  /** "gen_…"; the id of its ledger entry has the same suffix. */
  readonly id: string;
  /** The last upstream that received the request; undefined if none did. */
  readonly upstream: string | undefined;
  /** Undefined until the charge is settled, and for a generation that is free. */
  readonly charge: Pick<Charge, "usage" | "amountMicros" | "upstreamCostMicros"> | undefined;
  /** Calls the listener once, when the hold has ended; immediately if it has already ended. */
  onSettled(listener: () => void): void;
};
