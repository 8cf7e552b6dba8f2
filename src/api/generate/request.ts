import type {
  ContentPart as ContentPartMessage,
  GenerateRequest,
  Image as ImageMessage,
  Message,
  Reasoning as ReasoningMessage,
  ResponseFormat as ResponseFormatMessage,
  StreamGenerateRequest,
  Tool as ToolMessage,
} from "../../../gen/vx/v1/generate_pb.js";
import type { GenerationRequest } from "../../billing/generation-request.ts";
import { DomainError } from "../../domain/errors.ts";
import { imageOfBytes, imageOfUrl } from "../../domain/image.ts";
import type {
  ContentPart,
  Image,
  ImageDetail,
  PromptMessage,
  PromptOptions,
  Reasoning,
  ReasoningEffort,
  ResponseFormat,
  Tool,
  ToolChoice,
} from "../../domain/prompt.ts";
import { presentOptions } from "../request-values.ts";

type AnyRequest = GenerateRequest | StreamGenerateRequest;

export function generationRequestOf(request: AnyRequest): GenerationRequest | Promise<GenerationRequest> {
  const messages = promptMessagesOf(request.messages);
  return messages instanceof Promise
    ? messages.then((decoded) => withMessages(request, decoded))
    : withMessages(request, messages);
}

function withMessages(request: AnyRequest, messages: PromptMessage[]): GenerationRequest {
  return {
    format: "native",
    model: request.model,
    messages,
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    stop: request.stop,
    options: optionsOf(request),
    user: request.user,
    maxCostMicros: request.maxCostMicros,
  };
}

function optionsOf(request: AnyRequest): PromptOptions {
  const { topP, topK, seed, presencePenalty, frequencyPenalty, parallelToolCalls } = request;
  return presentOptions({
    topP,
    topK,
    seed: seed === undefined ? undefined : Number(seed),
    presencePenalty,
    frequencyPenalty,
    tools: request.tools.length === 0 ? undefined : request.tools.map(toolOf),
    toolChoice: request.toolChoice === undefined ? undefined : toolChoiceOf(request.toolChoice),
    parallelToolCalls,
    responseFormat: request.responseFormat && responseFormatOf(request.responseFormat),
    // The rules of the .proto limit the values.
    reasoningEffort: request.reasoningEffort as ReasoningEffort | undefined,
  });
}

function toolOf({ name, description, parameters, strict }: ToolMessage): Tool {
  return { name, description: description === "" ? undefined : description, parameters, strict };
}

function toolChoiceOf(text: string): ToolChoice {
  if (text === "auto" || text === "none" || text === "required") return { kind: text };
  return { kind: "tool", name: text };
}

function responseFormatOf(format: ResponseFormatMessage): ResponseFormat | undefined {
  const { type, name, schema, strict } = format;
  if (type === "json_schema") {
    if (!schema)
      throw DomainError.ofField("response_format.schema", 'is required with the type "json_schema"');
    return { kind: "json_schema", name: name === "" ? "response" : name, schema, strict };
  }
  if (name !== "" || schema || strict !== undefined) {
    throw DomainError.ofField(
      "response_format",
      'must have no name, schema or strict, except with the type "json_schema"',
    );
  }
  return type === "json" ? { kind: "json" } : undefined;
}

/**
 * Copies the fields, because a protobuf message has members that upstreams do not accept, such as $typeName. The
 * rules of the .proto limit roles and details.
 */
function promptMessagesOf(messages: readonly Message[]): PromptMessage[] | Promise<PromptMessage[]> {
  return messages.every(isTextAlone) ? messages.map(textMessageOf) : messagesWithParts(messages);
}

async function messagesWithParts(messages: readonly Message[]): Promise<PromptMessage[]> {
  const prompt: PromptMessage[] = [];
  for (const [i, message] of messages.entries()) {
    if (isTextAlone(message)) prompt.push(textMessageOf(message));
    else prompt.push({ role: roleOf(message), ...(await membersOf(message, `messages[${i}]`)) });
  }
  return prompt;
}

function isTextAlone({ content, parts, toolCallId, toolCalls, reasoning }: Message): boolean {
  return (
    content !== undefined &&
    parts.length === 0 &&
    toolCallId === "" &&
    toolCalls.length === 0 &&
    reasoning.length === 0
  );
}

function textMessageOf(message: Message): PromptMessage {
  return { role: roleOf(message), content: message.content ?? "" };
}

function roleOf({ role }: Message): PromptMessage["role"] {
  return role as PromptMessage["role"];
}

async function membersOf(message: Message, field: string): Promise<Omit<PromptMessage, "role">> {
  const { content, parts, toolCallId, toolCalls, reasoning } = message;
  if (content !== undefined && parts.length > 0) {
    throw DomainError.ofField(`${field}.parts`, "must not be set together with content");
  }
  if (content === undefined && parts.length === 0 && toolCalls.length === 0 && toolCallId === "") {
    throw DomainError.ofField(`${field}.content`, "is required without parts, tool_calls or tool_call_id");
  }
  return {
    content: parts.length > 0 ? await contentOf(parts, `${field}.parts`) : (content ?? ""),
    ...(toolCallId === "" ? {} : { toolCallId }),
    ...(toolCalls.length === 0
      ? {}
      : { toolCalls: toolCalls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text })) }),
    ...(reasoning.length === 0 ? {} : { reasoning: reasoning.map(reasoningOf) }),
  };
}

async function contentOf(parts: readonly ContentPartMessage[], field: string): Promise<ContentPart[]> {
  const content: ContentPart[] = [];
  for (const [i, part] of parts.entries()) content.push(await partOf(part, `${field}[${i}]`));
  return content;
}

async function partOf({ text, image }: ContentPartMessage, field: string): Promise<ContentPart> {
  if (image && text === undefined) {
    const detail = image.detail as ImageDetail | undefined;
    return { kind: "image", image: await imageOf(image, `${field}.image`), detail };
  }
  if (image || text === undefined) throw DomainError.ofField(field, "must have either text or image");
  return { kind: "text", text };
}

async function imageOf({ url, data, mediaType }: ImageMessage, field: string): Promise<Image> {
  if (data && url === undefined) return await imageOfBytes(mediaType ?? "", data, `${field}.data`);
  if (data || url === undefined) throw DomainError.ofField(field, "must have either url or data");
  if (mediaType !== undefined) throw DomainError.ofField(`${field}.media_type`, "requires data");
  return imageOfUrl(url, `${field}.url`);
}

function reasoningOf({ text, signature, encrypted }: ReasoningMessage): Reasoning {
  return {
    text,
    signature: signature === "" ? undefined : signature,
    encrypted: encrypted === "" ? undefined : encrypted,
  };
}
