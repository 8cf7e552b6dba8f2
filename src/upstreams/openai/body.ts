import {
  type ContentPart,
  NO_OPTIONS,
  type Prompt,
  type PromptMessage,
  type PromptOptions,
  type ResponseFormat,
  type Tool,
  type ToolCall,
  type ToolChoice,
  textOfPart,
} from "../../domain/prompt.ts";
import { extraFieldsOf, isExtraField, isReasoningAlone } from "../dialect.ts";
import { urlOf } from "../http/request-body.ts";

/** The body of a request for a chat completion. Members without a value are not sent. */
export function openaiBody(prompt: Prompt, model: string, maxTokensName: "max_tokens" | "max_completion_tokens"): object {
  const { messages, maxTokens, temperature, stop, options } = prompt;
  return {
    ...extraFieldsOf(prompt, "openai-chat"),
    model,
    messages: isExtraField(prompt.traits, "reasoning_content")
      ? messages.map(messageWithReasoning)
      : messages.filter((message) => !isReasoningAlone(message)).map(messageOf),
    [maxTokensName]: maxTokens,
    temperature,
    stop: stop.length === 0 ? undefined : stop,
    ...(options === NO_OPTIONS ? undefined : fieldsOf(options)),
    ...(options.topK === undefined ? undefined : { top_k: options.topK }),
    // Always stream, so that the output is known when a caller disconnects.
    stream: true,
    stream_options: { include_usage: true },
  };
}

/** The format has no place for reasoning; some servers require it in this field. */
function messageWithReasoning(message: PromptMessage): object {
  const reasoning = message.reasoning?.map(({ text }) => text).join("") ?? "";
  return reasoning === "" ? messageOf(message) : { ...messageOf(message), reasoning_content: reasoning };
}

function messageOf({ role, content, toolCalls, toolCallId }: PromptMessage): object {
  const encoded = contentOf(content);
  if (toolCallId !== undefined) return { role, content: encoded, tool_call_id: toolCallId };
  if (!toolCalls) return { role, content: encoded };
  // The content can be empty: servers with templates of their own refuse a message without content, or with null.
  return { role, content: encoded, tool_calls: toolCalls.map(callOf) };
}

/** A list of only texts becomes one text: many servers accept lists only in messages of users, and only with images. */
function contentOf(content: PromptMessage["content"]): string | object[] {
  if (typeof content === "string") return content;
  if (content.some(({ kind }) => kind === "image")) return content.map(partOf);
  return content.map(textOfPart).join("");
}

function partOf(part: ContentPart): object {
  if (part.kind === "text") return { type: "text", text: part.text };
  return { type: "image_url", image_url: { url: urlOf(part.image), detail: part.detail } };
}

function callOf({ id, name, arguments: text }: ToolCall): object {
  return { id, type: "function", function: { name, arguments: text } };
}

function fieldsOf(options: PromptOptions): object {
  const { tools = [], toolChoice, responseFormat } = options;
  return {
    top_p: options.topP,
    seed: options.seed,
    presence_penalty: options.presencePenalty,
    frequency_penalty: options.frequencyPenalty,
    reasoning_effort: options.reasoningEffort,
    response_format: responseFormat && formatOf(responseFormat),
    // Servers refuse these fields if there are no tools.
    ...(tools.length === 0
      ? undefined
      : {
          tools: tools.map(toolOf),
          tool_choice: toolChoice && choiceOf(toolChoice),
          parallel_tool_calls: options.parallelToolCalls,
        }),
  };
}

function toolOf({ name, description, parameters, strict }: Tool): object {
  return { type: "function", function: { name, description, parameters, strict } };
}

function choiceOf(choice: ToolChoice): unknown {
  return choice.kind === "tool" ? { type: "function", function: { name: choice.name } } : choice.kind;
}

function formatOf(format: ResponseFormat): object {
  if (format.kind === "json") return { type: "json_object" };
  const { name, schema, strict } = format;
  return { type: "json_schema", json_schema: { name, schema, strict } };
}

export function openaiHeaders(apiKey: string | undefined): Readonly<Record<string, string>> {
  return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
}
