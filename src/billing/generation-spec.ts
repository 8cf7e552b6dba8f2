import type { CallTrace } from "../domain/call-trace.ts";
import type { Model } from "../domain/model.ts";
import type { Prompt } from "../domain/prompt.ts";
import type { AdmittedKey } from "../store/admit.ts";
import type { Size } from "./generation-size.ts";

/** The parameters of a generation whose hold is placed. */
export type GenerationSpec = {
  readonly id: string;
  readonly key: AdmittedKey;
  readonly requestId: string;
  readonly trace: CallTrace | undefined;
  /** The caller's end user; empty if unknown. */
  readonly user: string;
  readonly model: Model;
  readonly prompt: Prompt;
  readonly size: Size;
  /** The output limit, if it is lower than the call asked for. */
  readonly loweredMaxTokens: number | undefined;
  /** With a key, the answer is stored for a retry with the same key. */
  readonly idempotencyKey: string | undefined;
};
