import type { ChatMessage, CreateChatCompletionRequest } from "../../../gen/vx/openai/v1/chat_pb.js";
import { DomainError } from "../../domain/errors.ts";
import { imageOfUrl } from "../../domain/image.ts";
import type { JsonValue } from "../../domain/json.ts";
import {
  type ContentPart,
  MAX_CALLS,
  MAX_PARTS,
  type PromptMessage,
  type PromptOptions,
  presentOptions,
  type ResponseFormat,
  type Tool,
  type ToolCall,
} from "../../domain/prompt.ts";
import type { GenerationRequest } from "../../generations/generation-request.ts";
import { recordedUser } from "../../rules/request-values.ts";
import {
  choiceAt,
  isAbsent,
  jsonIn,
  listAt,
  objectAt,
  optionalListAt,
  optionalNumberAt,
  shown,
  textAt,
} from "../../rules/untyped-members.ts";
import {
  callArgumentsOf,
  effortOf,
  imageDetailOf,
  joinedTexts,
  requireType,
  schemaFormatOf,
  toolChoiceOf,
  toolOf,
  toolsAt,
} from "../fields.ts";

const MAX_STOPS = 4;
const MAX_STOP_CHARACTERS = 200;

/** Converts OpenAI's request, whose members are checked. */
export function generationRequestOfChat(request: CreateChatCompletionRequest): GenerationRequest {
  const { maxTokens, maxCompletionTokens } = request;
  if (maxTokens !== undefined && maxCompletionTokens !== undefined && maxTokens !== maxCompletionTokens) {
    throw DomainError.ofField("max_tokens", "must equal max_completion_tokens, or be absent");
  }
  return {
    format: "openai-chat",
    model: request.model,
    messages: request.messages.map(promptMessageOfChat),
    maxTokens: maxCompletionTokens ?? maxTokens,
    temperature: request.temperature,
    stop: stopsOf(jsonIn(request.stop)),
    options: optionsOfChat(request),
    user: recordedUser(request.user ?? request.safetyIdentifier ?? ""),
    maxCostMicros: undefined,
  };
}

export function stopsOf(stop: JsonValue | undefined): string[] {
  if (stop === undefined || stop === null) return [];
  if (!Array.isArray(stop)) return [stopText(stop, "stop")];
  if (stop.length > MAX_STOPS) throw DomainError.ofField("stop", `must have at most ${MAX_STOPS} strings`);
  return stop.map((text, i) => stopText(text, `stop[${i}]`));
}

function stopText(text: JsonValue, field: string): string {
  if (typeof text !== "string") throw DomainError.ofField(field, "must be a string");
  const { length } = [...text.slice(0, 2 * MAX_STOP_CHARACTERS + 2)];
  if (length === 0 || length > MAX_STOP_CHARACTERS) {
    throw DomainError.ofField(field, `must have 1 to ${MAX_STOP_CHARACTERS} characters`);
  }
  return text;
}

/** The parameters of OpenAI's request that most requests leave out. */
function optionsOfChat(request: CreateChatCompletionRequest): PromptOptions {
  return presentOptions({
    topP: optionalNumberAt(jsonIn(request.topP), "top_p", 0, 1),
    frequencyPenalty: optionalNumberAt(jsonIn(request.frequencyPenalty), "frequency_penalty", -2, 2),
    presencePenalty: optionalNumberAt(jsonIn(request.presencePenalty), "presence_penalty", -2, 2),
    seed: request.seed === undefined ? undefined : Number(request.seed),
    tools: toolsOf(jsonIn(request.tools)),
    toolChoice: toolChoiceOf(jsonIn(request.toolChoice), (choice) =>
      textAt(objectAt(choice.function, "tool_choice.function").name, "tool_choice.function.name"),
    ),
    parallelToolCalls: request.parallelToolCalls,
    responseFormat: responseFormatOf(jsonIn(request.responseFormat)),
    reasoningEffort: effortOf(jsonIn(request.reasoningEffort), "reasoning_effort"),
    extraFields: request.extraFields && { format: "openai-chat", fields: request.extraFields },
  });
}

function toolsOf(tools: JsonValue | undefined): readonly Tool[] | undefined {
  return toolsAt(tools, (tool, field) => toolOf(objectAt(tool.function, `${field}.function`), `${field}.function`));
}

function responseFormatOf(value: JsonValue | undefined): ResponseFormat | undefined {
  if (isAbsent(value)) return undefined;
  const format = objectAt(value, "response_format");
  switch (choiceAt(format.type, "response_format.type", ["text", "json_object", "json_schema"])) {
    case "text":
      return undefined;
    case "json_object":
      return { kind: "json" };
    case "json_schema": {
      const field = "response_format.json_schema";
      return schemaFormatOf(objectAt(format.json_schema, field), field);
    }
  }
}

/** Converts one of OpenAI's messages. The checks that all formats share are made later. */
function promptMessageOfChat(message: ChatMessage, i: number): PromptMessage {
  const field = `messages[${i}]`;
  const { role, toolCallId, reasoningContent } = message;
  const toolCalls = toolCallsOf(jsonIn(message.toolCalls), `${field}.tool_calls`);
  return {
    role: role === "developer" ? "system" : (role as PromptMessage["role"]),
    content: contentOf(message, toolCalls !== undefined, `${field}.content`),
    ...(toolCalls && { toolCalls }),
    ...(reasoningContent && {
      reasoning: [{ text: reasoningContent, signature: undefined, encrypted: undefined }],
    }),
    ...(toolCallId !== undefined && { toolCallId }),
  };
}

function toolCallsOf(calls: JsonValue | undefined, field: string): readonly ToolCall[] | undefined {
  const list = optionalListAt(calls, field, MAX_CALLS) ?? [];
  return list.length === 0 ? undefined : list.map((call, i) => toolCallOf(call, `${field}[${i}]`));
}

function toolCallOf(value: JsonValue, field: string): ToolCall {
  const call = objectAt(value, field);
  requireType(call, "function", field);
  const called = objectAt(call.function, `${field}.function`);
  return {
    id: textAt(call.id, `${field}.id`),
    name: textAt(called.name, `${field}.function.name`),
    arguments: callArgumentsOf(called.arguments, `${field}.function.arguments`),
  };
}

/** A refusal is the text of a message without content. */
function contentOf(message: ChatMessage, hasToolCalls: boolean, field: string): PromptMessage["content"] {
  const content = jsonIn(message.content);
  if (typeof content === "string") return content;
  if (isAbsent(content)) {
    if (message.refusal !== undefined) return message.refusal;
    if (hasToolCalls) return "";
    throw DomainError.ofField(field, "must be a string or a list of parts");
  }
  const parts = listAt(content, field, MAX_PARTS);
  if (parts.length === 0) throw DomainError.ofField(field, "must have at least one part");
  return joinedTexts(parts.map((part, i) => partOf(part, `${field}[${i}]`)));
}

function partOf(value: JsonValue, field: string): ContentPart {
  const part = objectAt(value, field);
  switch (part.type) {
    case "text":
      return { kind: "text", text: textAt(part.text, `${field}.text`) };
    case "refusal":
      return { kind: "text", text: textAt(part.refusal, `${field}.refusal`) };
    case "image_url": {
      const where = `${field}.image_url`;
      const { url, detail } = objectAt(part.image_url, where);
      return {
        kind: "image",
        image: imageOfUrl(textAt(url, `${where}.url`), `${where}.url`),
        detail: imageDetailOf(detail, `${where}.detail`),
      };
    }
    default:
      throw DomainError.ofField(`${field}.type`, `must be "text" or "image_url": ${shown(part.type)} is not supported`);
  }
}
