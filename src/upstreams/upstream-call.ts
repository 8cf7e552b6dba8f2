import type { CallTrace } from "../domain/call-trace.ts";
import type { Model } from "../domain/model.ts";
import type { Prompt } from "../domain/prompt.ts";
import type { Progress } from "./progress.ts";

/** One generation for the upstreams of its model. */
export type UpstreamCall = {
  readonly model: Model;
  readonly prompt: Prompt;
  /** The account whose share of the slots is used and whose failures are counted. */
  readonly accountId: string;
  /** Selects the upstream among those with a weight; undefined for a random one. */
  readonly idempotencyKey: string | undefined;
  /** For the log. */
  readonly requestId: string;
  readonly trace: CallTrace | undefined;
  readonly signal: AbortSignal;
  readonly progress: Progress;
};
