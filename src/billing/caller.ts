import type { Micros } from "../domain/money.ts";
import type { AdmittedKey } from "../store/admit.ts";

/** Who asks for a generation, and what can end it early, whatever the protocol. */
export type Caller = {
  /** The called method: part of what an idempotency key stands for. */
  readonly method: string;
  readonly requestId: string;
  readonly key: AdmittedKey;
  readonly idempotencyKey: string | undefined;
  /** Aborted when the caller leaves, its deadline passes, or the server stops. */
  readonly signal: AbortSignal;
  /** Why the signal was aborted. */
  readonly endReason: () => "deadline_exceeded" | "unavailable" | "gone";
  /** Called when the model is known. */
  readonly onModel: (modelId: string) => void;
  /** Called when the generation starts. */
  readonly onStart: (generation: StartedGeneration) => void;
  /** Called when an earlier response is repeated. */
  readonly onReplay: () => void;
};

/** What the log of a call says about its generation. */
export type StartedGeneration = {
  /** The last upstream that was asked; undefined while none was. */
  readonly upstream: string | undefined;
  /** Undefined until it is charged, and where it is free. */
  readonly charge:
    | { readonly inputTokens: number; readonly outputTokens: number; readonly amountMicros: Micros }
    | undefined;
  /** Calls the listener once, when the hold has ended; at once if it has. */
  onSettled(listener: () => void): void;
};
