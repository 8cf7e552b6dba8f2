import type { CallTrace } from "../domain/call-trace.ts";
import { DomainError, type Reason } from "../domain/errors.ts";
import { assertInvariant } from "../domain/invariant.ts";
import type { Model } from "../domain/model.ts";
import { isEmpty, type Output, textsOfReasoning, textsOfReply } from "../domain/output.ts";
import { clampUsage, costOf, inputTokensOf, outputTokensOf, type Usage, usageOf } from "../domain/price.ts";
import type { CountOptions, Prompt } from "../domain/prompt.ts";
import type { AdmittedKey } from "../keys/admit.ts";
import type { Progress, UpstreamEnd } from "../upstreams/upstream.ts";
import type { Charge } from "./bill-statement.ts";
import type { Size, Tokens } from "./generation-size.ts";
import { encodeAnswer } from "./stored-answer.ts";

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

export type Ending =
  | { readonly kind: "completed"; readonly done: UpstreamEnd }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "stopped"; readonly why: Stop; readonly error: unknown };

/** The reasons why a generation ends before its upstream is done. */
export type Stop =
  | "disconnected"
  | "deadline_exceeded"
  | "too_long"
  | "revoked_api_key"
  | "insufficient_scope"
  | "account_suspended"
  | "unavailable";

type Rule = {
  /** The reason in the error that the caller gets, if it still reads, and in the stored answer. */
  readonly reason: Reason;
  /** The message of the error; undefined for the default text of the reason. */
  readonly message: string | undefined;
  /**
   * Whether the caller pays for the input once the request was sent to an upstream. False if the server
   * causes the stop: then only a stream is charged, for the pieces it delivered.
   */
  readonly chargedOnceSent: boolean;
  readonly text: string;
};

export const STOPS: Readonly<Record<Stop, Rule>> = {
  disconnected: rule("unavailable", "the caller disconnected"),
  deadline_exceeded: rule("deadline_exceeded", "the caller's deadline passed", "The call took longer than its deadline."),
  too_long: rule("deadline_exceeded", "stopped after 10 minutes", "The call reached the limit of 10 minutes."),
  revoked_api_key: rule("revoked_api_key", "stopped, the API key was revoked", "The API key was revoked during the call."),
  insufficient_scope: rule(
    "insufficient_scope",
    "stopped, the API key lost its scope",
    'The API key lost the scope "generate" during the call.',
  ),
  account_suspended: rule(
    "account_suspended",
    "stopped, the account was suspended",
    "The account was suspended during the call.",
  ),
  unavailable: { ...rule("unavailable", "stopped, the server shut down"), chargedOnceSent: false },
};

function rule(reason: Reason, text: string, message?: string): Rule {
  return { reason, message: message && `${message} Usage until then is charged.`, chargedOnceSent: true, text };
}

/** Time limit for counting the tokens that the upstream did not report. After it, they are estimated. */
const COUNT_MS = 10_000;

/** A generation that has stopped. */
export type Ended = {
  readonly spec: GenerationSpec;
  readonly ending: Ending;
  readonly progress: Progress;
  /** The output that was delivered, or stored for a retry. */
  readonly output: Output;
};

/** The charge of a generation; undefined if it is free. A promise if its tokens have to be counted. */
export function chargeOf(ended: Ended, tokens: Tokens): Charge | undefined | Promise<Charge> {
  if (!isCharged(ended)) return undefined;
  const reported = finalUsage(ended);
  return reported ? chargeFor(ended, reported) : countUsage(ended, tokens).then((counted) => chargeFor(ended, counted));
}

/** What the upstream reported for all of the charged output; undefined if it has to be counted. */
function finalUsage({ ending, progress: { report } }: Ended): Usage | undefined {
  if (ending.kind === "completed") return ending.done.usage;
  return report?.isFinal && paysForProduced(ending) ? report.usage : undefined;
}

/** Whether output is charged that was produced and not delivered: the stop was not caused by the server or the upstream. */
function paysForProduced(ending: Ending): boolean {
  return ending.kind === "stopped" && STOPS[ending.why].chargedOnceSent;
}

function chargeFor(ended: Ended, counted: Usage): Charge {
  const { upstream = "", cost } = ended.progress;
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
    priceListVersion: model.priceListVersion,
    upstream,
    upstreamCostMicros: cost && costOf(cost, usage),
    answer: idempotencyKey === undefined ? undefined : storedAnswer(ended),
  };
}

function isWithin(tokens: number, maxTokens: number): boolean {
  return 0 <= tokens && tokens <= maxTokens;
}

/** Whether the caller has got a part of the output. */
export function isDelivered({ spec, output }: Pick<Ended, "spec" | "output">): boolean {
  return spec.prompt.streamed && !isEmpty(output);
}

function isCharged(ended: Ended): boolean {
  const { ending, progress } = ended;
  switch (ending.kind) {
    case "completed":
      return true;
    case "failed":
      return isDelivered(ended);
    case "stopped":
      return STOPS[ending.why].chargedOnceSent ? progress.wasSent : isDelivered(ended);
  }
}

/** The usage that the upstream has reported so far, completed by counts. */
async function countUsage(ended: Ended, tokens: Tokens): Promise<Usage> {
  const { ending, progress, spec } = ended;
  const options = { signal: AbortSignal.timeout(COUNT_MS), accountId: spec.key.accountId };
  const reported = progress.report?.usage;
  const input = reported && inputTokensOf(reported) > 0 ? reported : await countInput(spec, tokens, options);
  const texts = producedTexts(ended);
  const output = await countTexts(texts.reply, tokens, options);
  const reasoning = await countTexts(texts.reasoning, tokens, options);
  // An upstream also reports what it does not send, for example reasoning.
  const isMoreReported = reported && outputTokensOf(reported) > output + reasoning;
  return isMoreReported && paysForProduced(ending)
    ? { ...input, output: reported.output, reasoning: reported.reasoning }
    : { ...input, output, reasoning };
}

/**
 * An image costs its maximum, because its tokens depend on its size and on the upstream: otherwise a call that is cut before
 * the upstream reports its usage would get images for free.
 */
async function countInput({ model, prompt, size }: GenerationSpec, tokens: Tokens, options: CountOptions): Promise<Usage> {
  const imageTokens = size.images * model.imageTokens;
  const promptTokens = size.counted
    ? size.promptTokens
    : await estimatedOnFailure(
        () => tokens.countPrompt(prompt, options),
        () => tokens.estimatePrompt(prompt),
      );
  return usageOf({ inputTokens: imageTokens + promptTokens, outputTokens: 0, imageTokens });
}

function countTexts(texts: readonly string[], tokens: Tokens, options: CountOptions): Promise<number> {
  return estimatedOnFailure(
    () => tokens.countTexts(texts, options),
    () => tokens.estimateTexts(texts),
  );
}

/** The estimate if counting fails or takes too long, for example because of too many calls of the account at once. */
async function estimatedOnFailure(count: () => number | Promise<number>, estimate: () => Promise<number>): Promise<number> {
  try {
    return await count();
  } catch {
    return await estimate();
  }
}

type ProducedTexts = { readonly reply: readonly string[]; readonly reasoning: readonly string[] };

function producedTexts({ ending, progress, output }: Ended): ProducedTexts {
  const reply = textsOfReply(output);
  const reasoning = textsOfReasoning(output);
  if (paysForProduced(ending) && progress.unread !== "") {
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
      return `${text} (the upstream failed)`;
    case "stopped":
      return `${text} (${STOPS[ending.why].text})`;
  }
}

function storedAnswer({ spec, ending, output }: Ended): string {
  return encodeAnswer({
    id: spec.id,
    output,
    vectors: ending.kind === "completed" ? ending.done.vectors : undefined,
    stopSequence: ending.kind === "completed" ? ending.done.stopSequence : undefined,
    finishReason: ending.kind === "completed" ? ending.done.finishReason : "stop",
    loweredMaxTokens: spec.loweredMaxTokens,
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
