import type { CallTrace } from "../domain/call-trace.ts";
import type { Micros } from "../domain/money.ts";
import type { Usage } from "../domain/usage.ts";
import type { AdmittedKey } from "../store/admit.ts";

/** The caller of a generation and the events that can end it early, the same in every protocol. */
export type Caller = {
  readonly requestId: string;
  /** Undefined if the caller names no trace and this server exports none. */
  readonly trace: CallTrace | undefined;
  readonly key: AdmittedKey;
  /** Undefined without an idempotency key. */
  readonly idempotency: Idempotency | undefined;
  /** Aborted when the caller disconnects, its deadline passes, or the server stops. */
  readonly signal: AbortSignal;
  /** Why the signal was aborted. */
  readonly endReason: () => "deadline_exceeded" | "unavailable" | "disconnected";
  /** Called once the model is known. */
  readonly onModel: (modelId: string) => void;
  /** Called when the generation starts. */
  readonly onStart: (generation: StartedGeneration) => void;
  /** Called before the reply if its output limit is lower than the call asked for. */
  readonly onLoweredMaxTokens: (maxTokens: number) => void;
  /** Called when an earlier response is replayed. */
  readonly onReplay: () => void;
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
  readonly charge: { readonly usage: Usage; readonly amountMicros: Micros } | undefined;
  /** Calls the listener once, when the hold has ended; immediately if it has already ended. */
  onSettled(listener: () => void): void;
};
