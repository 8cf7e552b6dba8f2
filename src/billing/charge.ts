import { DomainError, type Reason } from "../domain/errors.ts";
import { assertInvariant } from "../domain/invariant.ts";
import { clampUsage, costOf } from "../domain/price.ts";
import type { TokenUsage } from "../domain/prompt.ts";
import type { Charge } from "../store/bill-item.ts";
import type { Progress } from "../upstreams/progress.ts";
import type { GenerationSpec } from "./generation-spec.ts";
import type { Ending } from "./generation-state.ts";
import { STOPS, UPSTREAM_FAILED_TEXT } from "./stops.ts";
import { encodeAnswer } from "./stored-answer.ts";
import type { Tokens } from "./token-counts.ts";

/** Time limit for counting the tokens that the upstream did not report. */
const COUNT_MS = 10_000;
const BYTES_PER_TOKEN = 4;

/** A generation that has stopped. */
export type Ended = {
  readonly spec: GenerationSpec;
  readonly ending: Ending;
  readonly progress: Progress;
  /** The text that was delivered, or stored for a retry. */
  readonly text: string;
};

/** The charge of a generation; undefined if it is free. */
export async function chargeOf(ended: Ended, tokens: Tokens): Promise<Charge | undefined> {
  if (!isCharged(ended)) return undefined;
  const { ending, spec } = ended;
  const { id, model, size, key, requestId, kept } = spec;
  const max = { inputTokens: size.inputTokens, outputTokens: size.maxTokens };
  const reported = ending.kind === "completed" ? ending.done.usage : undefined;
  const usage = clampUsage(reported ?? (await countUsage(ended, tokens)), max);
  assertInvariant(
    isWithin(usage.inputTokens, max.inputTokens) && isWithin(usage.outputTokens, max.outputTokens),
    "the usage is within the size of the hold",
    { generation: id, ...usage, maxInputTokens: max.inputTokens, maxOutputTokens: max.outputTokens },
  );
  return {
    amountMicros: costOf(model, usage),
    reason: ledgerText(ended, usage),
    requestId,
    keyId: key.keyId,
    model: model.id,
    ...usage,
    inputPrice: model.inputMicrosPerMillionTokens,
    outputPrice: model.outputMicrosPerMillionTokens,
    answer: kept ? storedAnswer(ended) : undefined,
  };
}

function isWithin(tokens: number, maxTokens: number): boolean {
  return 0 <= tokens && tokens <= maxTokens;
}

function isCharged({ spec, ending, progress, text }: Ended): boolean {
  const isDelivered = spec.streamed && text !== "";
  switch (ending.kind) {
    case "completed":
      return true;
    case "failed":
      return isDelivered;
    case "stopped":
      return STOPS[ending.why].paidOnceSent ? progress.wasSent : isDelivered;
  }
}

/** If counting fails or times out, the charge uses an estimate from the bytes. */
async function countUsage(ended: Ended, tokens: Tokens): Promise<TokenUsage> {
  const { prompt, size, key } = ended.spec;
  const text = producedText(ended);
  const options = { signal: AbortSignal.timeout(COUNT_MS), payer: key.accountId };
  try {
    return {
      inputTokens: size.counted ? size.promptTokens : await tokens.countPrompt(prompt.messages, options),
      outputTokens: await tokens.countText(text, options),
    };
  } catch {
    return {
      inputTokens: size.counted ? size.promptTokens : Math.ceil(size.promptTokens / BYTES_PER_TOKEN),
      outputTokens: Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN),
    };
  }
}

/** Includes text that was produced but not delivered if the caller or the account caused the stop. */
function producedText({ ending, progress, text }: Ended): string {
  return ending.kind === "stopped" && STOPS[ending.why].paidOnceSent ? text + progress.unread : text;
}

function ledgerText({ spec, ending }: Ended, { inputTokens, outputTokens }: TokenUsage): string {
  const text = `Generation with ${spec.model.id}: ${inputTokens} tokens in, ${outputTokens} tokens out`;
  switch (ending.kind) {
    case "completed":
      return text;
    case "failed":
      return `${text} (${UPSTREAM_FAILED_TEXT})`;
    case "stopped":
      return `${text} (${STOPS[ending.why].text})`;
  }
}

function storedAnswer({ spec, ending, text }: Ended): string {
  return encodeAnswer({
    id: spec.id,
    content: text,
    finishReason: ending.kind === "completed" ? ending.done.finishReason : "stop",
    failure: failureReason(ending),
  });
}

function failureReason(ending: Ending): Reason | undefined {
  switch (ending.kind) {
    case "completed":
      return undefined;
    case "failed":
      return ending.error instanceof DomainError ? ending.error.reason : "upstream_error";
    case "stopped":
      return STOPS[ending.why].reason;
  }
}
