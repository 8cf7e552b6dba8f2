import type { JsonObject } from "../../domain/json.ts";
import {
  NO_OPTIONS,
  type Prompt,
  type PromptOptions,
  type ResponseFormat,
  type Tool,
  type ToolChoice,
} from "../../domain/prompt.ts";
import { extraFieldsOf } from "../upstream-fields.ts";
import { itemsOf } from "./openai-responses-items.ts";

const NO_PARAMETERS: JsonObject = { type: "object", properties: {} };

/** The body of a request for a response. Members without a value are not sent. */
export function openaiResponsesBody(prompt: Prompt, model: string): object {
  const { messages, maxTokens, temperature, options, traits } = prompt;
  return {
    ...extraFieldsOf(prompt, "openai-responses"),
    model,
    input: messages.flatMap(itemsOf),
    max_output_tokens: maxTokens,
    temperature,
    ...(options === NO_OPTIONS ? undefined : fieldsOf(options)),
    ...(options.topK === undefined ? undefined : { top_k: options.topK }),
    // Models without reasoning refuse this.
    include: traits.capabilities.includes("reasoning") ? ["reasoning.encrypted_content"] : undefined,
    store: false,
    stream: true,
  };
}

function fieldsOf(options: PromptOptions): object {
  const { tools = [], toolChoice, responseFormat, reasoningEffort } = options;
  return {
    top_p: options.topP,
    reasoning: reasoningEffort && { effort: reasoningEffort },
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
