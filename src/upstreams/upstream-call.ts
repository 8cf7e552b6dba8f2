import type { Model } from "../domain/model.ts";
import type { Prompt } from "../domain/prompt.ts";
import type { Progress } from "./runner/progress.ts";

/** One generation for the upstreams of its model. */
export type UpstreamCall = {
  readonly model: Model;
  readonly prompt: Prompt;
  /** Whose share of the slots it uses, and whose failures it adds to. */
  readonly accountId: string;
  /** For the log. */
  readonly requestId: string;
  readonly signal: AbortSignal;
  readonly progress: Progress;
};
