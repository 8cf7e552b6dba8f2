import {
  NO_OPTIONS,
  type Prompt,
  type PromptOptions,
  type Tool,
  type ToolChoice,
} from "../../domain/prompt.ts";
import { extraFieldsOf } from "../upstream-fields.ts";
import { systemOf, turnsOf } from "./anthropic-messages.ts";
import { thinkingOf } from "./anthropic-thinking.ts";

/** The body of a request for a message. Members without a value are not sent. */
export function anthropicBody(prompt: Prompt, model: string): object {
  const { messages, maxTokens, stop, options } = prompt;
  return {
    ...extraFieldsOf(prompt, "anthropic-messages"),
    model,
    messages: turnsOf(messages),
    max_tokens: maxTokens,
    system: systemOf(messages),
    temperature: temperatureOf(prompt),
    stop_sequences: stop.length === 0 ? undefined : stop,
    ...(options === NO_OPTIONS ? undefined : fieldsOf(prompt, model)),
    stream: true,
  };
}

/** The API's maximum is 1, ours is 2: higher values become 1. The API refuses any value for a model that thinks. */
function temperatureOf({ temperature, options }: Prompt): number | undefined {
  const isThinking = options.reasoningEffort !== undefined && options.reasoningEffort !== "none";
  return temperature === undefined || isThinking ? undefined : Math.min(temperature, 1);
}

function fieldsOf(prompt: Prompt, model: string): object {
  const { topP, topK, responseFormat } = prompt.options;
  const { thinking, effort } = thinkingOf(prompt, model);
  const format =
    responseFormat?.kind === "json_schema"
      ? { type: "json_schema", schema: responseFormat.schema }
      : undefined;
  return {
    top_p: topP,
    top_k: topK,
    thinking,
    output_config: effort === undefined && !format ? undefined : { effort, format },
    ...toolFieldsOf(prompt.options),
  };
}

/** The API accepts a choice only together with tools. */
function toolFieldsOf({ tools = [], toolChoice, parallelToolCalls }: PromptOptions): object | undefined {
  if (tools.length === 0) return undefined;
  const choice = toolChoice && choiceOf(toolChoice);
  const isSingle = parallelToolCalls === false && toolChoice?.kind !== "none";
  return {
    tools: tools.map(toolOf),
    tool_choice: isSingle ? { type: "auto", ...choice, disable_parallel_tool_use: true } : choice,
  };
}

function toolOf({ name, description, parameters, strict, cacheControl }: Tool): object {
  // An unchanged object is not written to JSON again.
  const input_schema = parameters?.type === "object" ? parameters : { type: "object", ...parameters };
  return { name, description, input_schema, strict, cache_control: cacheControl };
}

function choiceOf(choice: ToolChoice): { readonly type: string; readonly name?: string } {
  switch (choice.kind) {
    case "auto":
    case "none":
      return { type: choice.kind };
    case "required":
      return { type: "any" };
    case "tool":
      return { type: "tool", name: choice.name };
  }
}
