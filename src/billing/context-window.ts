import type { CountOptions } from "../domain/count-options.ts";
import { DomainError } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import { imagesIn } from "../domain/prompt-texts.ts";
import { fieldName } from "./field-names.ts";
import type { GenerationRequest } from "./generation-request.ts";
import type { Tokens } from "./token-counts.ts";

type Input = {
  /** The tokens of the texts. */
  readonly promptTokens: number;
  /** The tokens that the context window has for the reply. */
  readonly room: number;
};

/** Whether a request with at most these tokens surely fits. Each text of an embedding has the window for itself. */
export function fitsWindow({ contextWindow }: Model, request: GenerationRequest, maxTokens: number): boolean {
  return (
    maxTokens <= contextWindow || (isEmbedding(request) && longTextsOf(request, contextWindow).length === 0)
  );
}

/** The maximum tokens of the images. */
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
  return messages.flatMap(({ content }, i) =>
    typeof content === "string" && Buffer.byteLength(content) > maxTokens ? [i] : [],
  );
}

function tooLong({ id, contextWindow }: Model, field: string, counted: number): DomainError {
  const description = `have at least ${counted} tokens, but the context window of "${id}" has ${contextWindow} for messages and reply`;
  return new DomainError("context_length_exceeded", {
    message: `${field}: ${description}`,
    fields: [{ field, description }],
    metadata: { context_window: String(contextWindow), input_tokens: String(counted) },
  });
}
