import { DomainError, type Reason } from "../domain/errors.ts";
import { assertInvariant } from "../domain/invariant.ts";
import { isEmpty, type Output, textsOfReasoning, textsOfReply } from "../domain/output.ts";
import { costOf } from "../domain/price.ts";
import { clampUsage, inputTokensOf, outputTokensOf, type Usage, usageOf } from "../domain/usage.ts";
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
  /** The output that was delivered, or stored for a retry. */
  readonly output: Output;
};

/** The charge of a generation; undefined if it is free. A promise if the upstream reported no usage. */
export function chargeOf(ended: Ended, tokens: Tokens): Charge | undefined | Promise<Charge> {
  if (!isCharged(ended)) return undefined;
  const { ending } = ended;
  const reported = ending.kind === "completed" ? ending.done.usage : undefined;
  return reported
    ? chargeFor(ended, reported)
    : countUsage(ended, tokens).then((counted) => chargeFor(ended, counted));
}

function chargeFor(ended: Ended, counted: Usage): Charge {
  const { id, model, size, key, requestId, trace, user, idempotencyKey } = ended.spec;
  const usage = { ...clampUsage(counted, size.inputTokens, size.maxTokens), images: size.images };
  assertInvariant(
    isWithin(inputTokensOf(usage), size.inputTokens) && isWithin(outputTokensOf(usage), size.maxTokens),
    "the usage is within the size of the hold",
    () => ({ generation: id, ...usage, maxInputTokens: size.inputTokens, maxOutputTokens: size.maxTokens }),
  );
  return {
    amountMicros: costOf(model.prices, usage),
    reason: ledgerText(ended, usage),
    requestId,
    traceId: trace?.traceId ?? "",
    user,
    keyId: key.keyId,
    model: model.id,
    usage,
    prices: model.prices,
    priceVersion: model.priceVersion,
    answer: idempotencyKey === undefined ? undefined : storedAnswer(ended),
  };
}

function isWithin(tokens: number, maxTokens: number): boolean {
  return 0 <= tokens && tokens <= maxTokens;
}

function isCharged({ spec, ending, progress, output }: Ended): boolean {
  const isDelivered = spec.prompt.streamed && !isEmpty(output);
  switch (ending.kind) {
    case "completed":
      return true;
    case "failed":
      return isDelivered;
    case "stopped":
      return STOPS[ending.why].paidOnceSent ? progress.wasSent : isDelivered;
  }
}

/**
 * If counting fails or times out, the charge uses an estimate from the bytes. The tokens of an image depend on its size
 * and on the upstream, so an image costs its maximum: without it, a call that is cut before the upstream reports its
 * usage would get images for free.
 */
async function countUsage(ended: Ended, tokens: Tokens): Promise<Usage> {
  const { model, prompt, size, key } = ended.spec;
  const imageTokens = size.images * model.imageTokens;
  const texts = producedTexts(ended);
  const options = { signal: AbortSignal.timeout(COUNT_MS), payer: key.accountId };
  try {
    const reasoning = await tokens.countTexts(texts.reasoning, options);
    return usageOf({
      inputTokens:
        imageTokens + (size.counted ? size.promptTokens : await tokens.countPrompt(prompt, options)),
      outputTokens: reasoning + (await tokens.countTexts(texts.reply, options)),
      reasoning,
      imageTokens,
    });
  } catch {
    const reasoning = tokensOfBytes(texts.reasoning);
    return usageOf({
      inputTokens:
        imageTokens + (size.counted ? size.promptTokens : Math.ceil(size.promptTokens / BYTES_PER_TOKEN)),
      outputTokens: reasoning + tokensOfBytes(texts.reply),
      reasoning,
      imageTokens,
    });
  }
}

function tokensOfBytes(texts: readonly string[]): number {
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

type ProducedTexts = { readonly reply: readonly string[]; readonly reasoning: readonly string[] };

/** Includes texts that were produced but not delivered if the caller or the account caused the stop. */
function producedTexts({ ending, progress, output }: Ended): ProducedTexts {
  const reply = textsOfReply(output);
  const reasoning = textsOfReasoning(output);
  if (ending.kind === "stopped" && STOPS[ending.why].paidOnceSent && progress.unread !== "") {
    // The unread text continues the last one, so they are counted together. Reasoning comes before the reply.
    const last = reply.length === 0 && reasoning.length > 0 ? reasoning : reply;
    last.push((last.pop() ?? "") + progress.unread);
  }
  return { reply, reasoning };
}

function ledgerText({ spec, ending }: Ended, usage: Usage): string {
  const text = `Generation with ${spec.model.id}: ${inputTokensOf(usage)} tokens in, ${outputTokensOf(usage)} tokens out`;
  switch (ending.kind) {
    case "completed":
      return text;
    case "failed":
      return `${text} (${UPSTREAM_FAILED_TEXT})`;
    case "stopped":
      return `${text} (${STOPS[ending.why].text})`;
  }
}

function storedAnswer({ spec, ending, output }: Ended): string {
  return encodeAnswer({
    id: spec.id,
    output,
    vectors: ending.kind === "completed" ? ending.done.vectors : undefined,
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
