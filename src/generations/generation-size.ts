import { DomainError } from "../domain/errors.ts";
import type { LimitMetric } from "../domain/limit.ts";
import type { Model } from "../domain/model.ts";
import type { Micros } from "../domain/money.ts";
import { affordableOutput, type Extent, maxCostOf } from "../domain/price.ts";
import { type CountOptions, imagesIn, inputTokenBound, opaqueTokenBound, type PromptInput } from "../domain/prompt.ts";
import type { ShortHold } from "./bill-statement.ts";
import { fieldName } from "./check-request.ts";
import type { GenerationRequest } from "./generation-request.ts";
import { maxCostTooLow, type Need } from "./refusals.ts";

/** Minimum output limit of a call without max_tokens whose balance does not cover the model's default. */
const MIN_OUTPUT_TOKENS = 64;

/** The maximum usage of a generation, and its cost. */
export type Size = {
  /** Tokens of the texts only. */
  readonly promptTokens: number;
  readonly images: number;
  /** Whether promptTokens was counted; otherwise it is the upper bound given by the bytes. */
  readonly counted: boolean;
  /** promptTokens plus the maximum tokens of images, of opaque parts and of the upstream's chat template. */
  readonly inputTokens: number;
  readonly maxTokens: number;
  /** The lowest value that maxTokens may be reduced to, to fit the balance. */
  readonly minTokens: number;
  readonly amountMicros: Micros;
  /** Whether maxTokens was lowered to fit what was left. */
  readonly isLowered: boolean;
};

/** The calling account, with the balance as it was read at admission. */
export type Payer = { readonly accountId: string; readonly balanceMicros: Micros };

/**
 * The number of bytes of the input is known without counting and is an upper bound of its tokens. Tokens are counted only if
 * that bound does not fit the window, the balance or the maximum cost.
 */
export function boundedSize(
  model: Model,
  request: GenerationRequest,
  payer: Payer,
  tokens: Pick<Tokens, "countPrompt">,
  signal: AbortSignal,
): Size | Promise<Size> {
  const bound = inputTokenBound(request);
  return typeof bound === "number"
    ? sizeOfBound(bound, model, request, payer, tokens, signal)
    : bound.then((bytes) => sizeOfBound(bytes, model, request, payer, tokens, signal));
}

function sizeOfBound(
  bound: number,
  model: Model,
  request: GenerationRequest,
  { accountId, balanceMicros }: Payer,
  tokens: Pick<Tokens, "countPrompt">,
  signal: AbortSignal,
): Size | Promise<Size> {
  const output = outputRange(model, request);
  if (fitsWindow(model, request, bound + imageTokensOf(model, request) + output.maxTokens)) {
    const size = priced(model, request, { promptTokens: bound, counted: false, ...output });
    const fits = size.amountMicros <= (request.maxCostMicros ?? size.amountMicros);
    if (fits && size.amountMicros <= balanceMicros) return size;
  }
  return countedSize(model, request, tokens, { signal, accountId });
}

async function countedSize(
  model: Model,
  request: GenerationRequest,
  tokens: Pick<Tokens, "countPrompt">,
  options: CountOptions,
): Promise<Size> {
  const { promptTokens, room } = await countInput(model, request, tokens, options);
  const { maxTokens, minTokens } = outputRange(model, request);
  const size = priced(model, request, {
    promptTokens,
    counted: true,
    maxTokens: Math.min(maxTokens, room),
    minTokens: Math.min(minTokens, room),
  });
  const { maxCostMicros } = request;
  return maxCostMicros === undefined ? size : shrunkToMaxCost(model, size, maxCostMicros);
}

/** Lowers the output limit to what the maximum cost of the call covers, also a limit that the caller set. */
function shrunkToMaxCost(model: Model, size: Size, maxCostMicros: Micros): Size {
  const affordable = affordableOutput(model.prices, extentOf(size), maxCostMicros);
  if (affordable < 1) throw maxCostTooLow(withMaxTokens(model, size, 1).amountMicros, maxCostMicros);
  return {
    ...withMaxTokens(model, size, affordable),
    minTokens: Math.min(size.minTokens, affordable),
  };
}

/**
 * The next size to try for a hold that did not fit: counted, then with an output limit that fits what is left of the balance and of the
 * limits, then, as another call may take that in between, with the lowest one. Undefined if no smaller size can fit.
 */
export function nextSize(
  model: Model,
  request: GenerationRequest,
  size: Size,
  short: ShortHold,
  tokens: Pick<Tokens, "countPrompt">,
  options: CountOptions,
): Size | Promise<Size> | undefined {
  if (short.outcome === "limited" && !SIZED_METRICS.includes(short.limit.metric)) return undefined;
  if (!size.counted) return countedSize(model, request, tokens, options);
  if (size.maxTokens === size.minTokens) return undefined;
  if (size.isLowered) return withMaxTokens(model, size, size.minTokens);
  return { ...shrunkTo(model, size, roomOf(short)), isLowered: true };
}

/** The metrics of which a smaller call needs less. */
const SIZED_METRICS: readonly LimitMetric[] = ["cost", "tokens"];

type Room = { readonly micros: Micros; readonly tokens: bigint | undefined };

function roomOf({ balanceMicros, heldMicros, costRoom, tokenRoom }: ShortHold): Room {
  const available = balanceMicros - heldMicros;
  return {
    micros: costRoom !== undefined && costRoom < available ? costRoom : available,
    tokens: tokenRoom,
  };
}

/** Lowers the output limit to what the room covers, but not below minTokens. Never raises it. */
export function shrunkTo(model: Model, size: Size, { micros, tokens }: Room): Size {
  const affordable = affordableOutput(model.prices, extentOf(size), micros);
  const left = tokens === undefined ? affordable : Number(tokens) - size.inputTokens;
  return withMaxTokens(model, size, Math.max(size.minTokens, Math.min(affordable, left)));
}

/** What a hold of this size needs, and the least that a call with another output limit would need. */
export function needOf(model: Model, request: GenerationRequest, size: Size): Need {
  const minimum = () => ({
    micros: withMaxTokens(model, size, 1).amountMicros,
    tokens: BigInt(size.inputTokens) + 1n,
  });
  return { requiredMicros: size.amountMicros, minimum: isEmbedding(request) ? undefined : minimum() };
}

/** A limit that the caller set is lowered only to the model's maximum; the default may be lowered further. */
function outputRange(model: Model, { maxTokens: requested, options }: GenerationRequest): Pick<Size, "maxTokens" | "minTokens"> {
  if (options.task?.kind === "embed") return { maxTokens: 0, minTokens: 0 };
  const maxTokens = Math.min(requested ?? model.defaultOutputTokens, model.maxOutputTokens);
  return {
    maxTokens,
    minTokens: requested === undefined ? Math.min(MIN_OUTPUT_TOKENS, maxTokens) : maxTokens,
  };
}

/** The output limit that a call got in place of the higher one that it asked for, or of the model's default. */
export function loweredMaxTokensOf(
  model: Model,
  { maxTokens: requested = model.defaultOutputTokens, options }: GenerationRequest,
  { maxTokens }: Size,
): number | undefined {
  return maxTokens < requested && options.task?.kind !== "embed" ? maxTokens : undefined;
}

function priced(
  model: Model,
  request: GenerationRequest,
  size: Omit<Size, "inputTokens" | "images" | "amountMicros" | "isLowered">,
): Size {
  const { base, perMessage } = model.promptOverheadTokens;
  const inputTokens =
    size.promptTokens +
    imageTokensOf(model, request) +
    opaqueTokenBound(request, model.extraFields) +
    base +
    perMessage * request.messages.length;
  return withMaxTokens(
    model,
    { ...size, images: imagesIn(request.messages), inputTokens, amountMicros: 0n, isLowered: false },
    size.maxTokens,
  );
}

function withMaxTokens(model: Model, size: Size, maxTokens: number): Size {
  const amountMicros = maxCostOf(model.prices, extentOf({ ...size, maxTokens }));
  return { ...size, maxTokens, amountMicros };
}

function extentOf(size: Pick<Size, "inputTokens" | "maxTokens" | "images">): Extent {
  return { inputTokens: size.inputTokens, outputTokens: size.maxTokens, images: size.images };
}

type Input = {
  readonly promptTokens: number;
  /** The tokens that the context window has for the reply. */
  readonly room: number;
};

/** Whether a request with at most these tokens surely fits. Each text of an embedding has the window for itself. */
function fitsWindow({ contextWindow }: Model, request: GenerationRequest, maxTokens: number): boolean {
  return maxTokens <= contextWindow || (isEmbedding(request) && longTextsOf(request, contextWindow).length === 0);
}

export function imageTokensOf({ imageTokens }: Model, { messages }: GenerationRequest): number {
  return imagesIn(messages) * imageTokens;
}

/** Throws if the input does not fit the context window. */
export async function countInput(
  model: Model,
  request: GenerationRequest,
  tokens: Pick<Tokens, "countPrompt">,
  options: CountOptions,
): Promise<Input> {
  const { contextWindow: maxTokens } = model;
  if (!isEmbedding(request)) {
    const promptTokens = await tokens.countPrompt(request, { ...options, maxTokens });
    const room = maxTokens - promptTokens - imageTokensOf(model, request);
    if (room <= 0) throw tooLong(model, promptField(request), maxTokens - room);
    return { promptTokens, room };
  }
  for (const i of longTextsOf(request, maxTokens)) {
    const messages = request.messages.slice(i, i + 1);
    const counted = await tokens.countPrompt({ ...request, messages }, { ...options, maxTokens });
    if (counted > maxTokens) throw tooLong(model, request.fields?.[i] ?? `input[${i}]`, counted);
  }
  return { promptTokens: await tokens.countPrompt(request, options), room: 0 };
}

/** All messages together; a completion has only the prompt. */
function promptField({ format, fields, options }: GenerationRequest): string {
  return (options.task && fields?.[0]) ?? fieldName(format, "messages");
}

function isEmbedding({ options }: GenerationRequest): boolean {
  return options.task?.kind === "embed";
}

/** The positions of the texts that may not fit: a text has at most one token for each byte. */
function longTextsOf({ messages }: GenerationRequest, maxTokens: number): number[] {
  return messages.flatMap(({ content }, i) => (typeof content === "string" && Buffer.byteLength(content) > maxTokens ? [i] : []));
}

function tooLong({ id, contextWindow }: Model, field: string, counted: number): DomainError {
  const description = `have at least ${counted} tokens, but the context window of "${id}" has ${contextWindow} for messages and reply`;
  return new DomainError("context_length_exceeded", {
    message: `${field}: ${description}`,
    fields: [{ field, description }],
    metadata: { context_window: String(contextWindow), input_tokens: String(counted) },
  });
}

/** Counts tokens. Long texts are counted off the main thread. */
export type Tokens = {
  countPrompt(prompt: PromptInput, options?: CountOptions): number | Promise<number>;
  countTexts(texts: readonly string[], options?: CountOptions): Promise<number>;
  /** From a random sample, for texts that cannot be counted in time. */
  estimatePrompt(prompt: PromptInput): Promise<number>;
  estimateTexts(texts: readonly string[]): Promise<number>;
};
