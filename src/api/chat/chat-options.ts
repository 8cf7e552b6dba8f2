import type { CreateChatCompletionRequest } from "../../../gen/vx/openai/v1/chat_pb.js";
import { MAX_TOOLS } from "../../billing/check-request.ts";
import type { JsonValue } from "../../domain/json.ts";
import type { PromptOptions, ResponseFormat, Tool } from "../../domain/prompt.ts";
import { effortOf, requireType, schemaFormatOf, toolChoiceOf, toolOf } from "../openai-fields.ts";
import { presentOptions } from "../present-options.ts";
import { jsonIn } from "../unsupported-fields.ts";
import {
  choiceAt,
  isAbsent,
  objectAt,
  optionalListAt,
  optionalNumberAt,
  textAt,
} from "../untyped-members.ts";

/** The parameters of OpenAI's request that most requests leave out. */
export function optionsOfChat(request: CreateChatCompletionRequest): PromptOptions {
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
  const list = optionalListAt(tools, "tools", MAX_TOOLS) ?? [];
  if (list.length === 0) return undefined;
  return list.map((one, i) => {
    const field = `tools[${i}]`;
    const tool = objectAt(one, field);
    requireType(tool, "function", field);
    return toolOf(objectAt(tool.function, `${field}.function`), `${field}.function`);
  });
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
