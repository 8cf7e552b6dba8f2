import type { JsonObject } from "../../domain/json.ts";
import {
  type ContentPart,
  NO_OPTIONS,
  type Prompt,
  type PromptMessage,
  type PromptOptions,
  type Reasoning,
  type ResponseFormat,
  type Tool,
  type ToolCall,
  type ToolChoice,
  textOfPart,
} from "../../domain/prompt.ts";
import { extraFieldsOf, splitItemId } from "../dialect.ts";
import { urlOf } from "../http/request-body.ts";

/** The API refuses lower limits. */
export const MIN_OUTPUT_TOKENS = 16;

const NO_PARAMETERS: JsonObject = { type: "object", properties: {} };

/** The body of a request for a response. Members without a value are not sent. */
export function openaiResponsesBody(prompt: Prompt, model: string): object {
  const { messages, maxTokens, temperature, options, traits } = prompt;
  return {
    ...extraFieldsOf(prompt, "openai-responses"),
    model,
    input: messages.flatMap(itemsOf),
    max_output_tokens: Math.max(maxTokens, MIN_OUTPUT_TOKENS),
    temperature,
    ...(options === NO_OPTIONS ? undefined : fieldsOf(options)),
    reasoning: reasoningOf(prompt),
    ...(options.topK === undefined ? undefined : { top_k: options.topK }),
    // Models without reasoning refuse this.
    include: traits.capabilities.includes("reasoning") ? ["reasoning.encrypted_content"] : undefined,
    store: false,
    stream: true,
  };
}

function fieldsOf(options: PromptOptions): object {
  const { tools = [], toolChoice, responseFormat } = options;
  return {
    top_p: options.topP,
    text: responseFormat && { format: formatOf(responseFormat) },
    ...(tools.length === 0
      ? undefined
      : {
          tools: tools.map(toolOf),
          tool_choice: toolChoice && choiceOf(toolChoice),
          parallel_tool_calls: options.parallelToolCalls,
        }),
  };
}

/** Models without reasoning refuse to summarize it. */
function reasoningOf({ options, traits }: Prompt): object | undefined {
  const { reasoningEffort: effort } = options;
  const summary = traits.capabilities.includes("reasoning") ? options.reasoningSummary : undefined;
  return effort === undefined && summary === undefined ? undefined : { effort, summary };
}

/** The API requires both members, and its default for `strict` is true. */
function toolOf({ name, description, parameters = NO_PARAMETERS, strict = false }: Tool): object {
  return { type: "function", name, description, parameters, strict };
}

function choiceOf(choice: ToolChoice): unknown {
  return choice.kind === "tool" ? { type: "function", name: choice.name } : choice.kind;
}

function formatOf(format: ResponseFormat): object {
  if (format.kind === "json") return { type: "json_object" };
  const { name, schema, strict } = format;
  return { type: "json_schema", name, schema, strict };
}

function itemsOf(message: PromptMessage): object[] {
  const { role, content, toolCalls, reasoning, toolCallId } = message;
  if (toolCallId !== undefined) {
    return [{ type: "function_call_output", call_id: toolCallId, output: contentOf(content) }];
  }
  if (role !== "assistant") return [{ role, content: contentOf(content) }];
  const text = typeof content === "string" ? content : content.map(textOfPart).join("");
  // The API refuses reasoning of other servers, which it cannot decrypt.
  const items: object[] = (reasoning ?? []).filter(({ encrypted }) => Boolean(encrypted)).map(reasoningItem);
  if (text !== "" || (!toolCalls && !reasoning)) items.push({ role, content: text });
  return toolCalls ? [...items, ...toolCalls.map(callItem)] : items;
}

function reasoningItem({ text, encrypted: opaque = "" }: Reasoning): object {
  const { id, encrypted } = splitItemId(opaque);
  return {
    type: "reasoning",
    id,
    summary: text === "" ? [] : [{ type: "summary_text", text }],
    encrypted_content: encrypted,
  };
}

function callItem({ id, name, arguments: text }: ToolCall): object {
  return { type: "function_call", call_id: id, name, arguments: text };
}

function contentOf(content: PromptMessage["content"]): string | object[] {
  return typeof content === "string" ? content : content.map(partOf);
}

/** The API requires `detail`. */
function partOf(part: ContentPart): object {
  if (part.kind === "text") return { type: "input_text", text: part.text };
  return { type: "input_image", image_url: urlOf(part.image), detail: part.detail ?? "auto" };
}
