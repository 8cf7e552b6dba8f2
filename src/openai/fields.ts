import { DomainError } from "../domain/errors.ts";
import type { JsonObject, JsonValue } from "../domain/json.ts";
import {
  type ContentPart,
  type ImageDetail,
  type PromptMessage,
  REASONING_EFFORTS,
  type ReasoningEffort,
  type ResponseFormat,
  type Tool,
  type ToolChoice,
} from "../domain/prompt.ts";
import { MAX_TOOLS } from "../generations/check-request.ts";
import { isOtherTool } from "../rules/request-members.ts";
import {
  choiceAt,
  isAbsent,
  objectAt,
  optionalBooleanAt,
  optionalListAt,
  optionalObjectAt,
  optionalTextAt,
  shown,
  textAt,
} from "../rules/untyped-members.ts";

/** The parts of requests that are the same in OpenAI's two formats. */

const IMAGE_DETAILS: readonly ImageDetail[] = ["auto", "low", "high"];

export function toolOf(definition: JsonObject, field: string): Tool {
  const { name, description, parameters, strict } = definition;
  return {
    name: textAt(name, `${field}.name`),
    description: optionalTextAt(description, `${field}.description`),
    parameters: optionalObjectAt(parameters, `${field}.parameters`),
    strict: optionalBooleanAt(strict, `${field}.strict`),
  };
}

/** The tools that the model can call. Those of other types are left out. */
export function toolsAt(
  tools: JsonValue | undefined,
  toolAt: (tool: JsonObject, field: string) => Tool,
): readonly Tool[] | undefined {
  const list = (optionalListAt(tools, "tools", MAX_TOOLS) ?? []).flatMap((one, i) => {
    const field = `tools[${i}]`;
    const tool = objectAt(one, field);
    if (isOtherTool(tool, "function")) return [];
    requireType(tool, "function", field);
    return toolAt(tool, field);
  });
  return list.length === 0 ? undefined : list;
}

/** Refuses a member `type` with another value, and names that value. */
export function requireType(object: JsonObject, type: string, field: string): void {
  if (object.type === type) return;
  throw DomainError.ofField(`${field}.type`, `must be "${type}": ${shown(object.type)} is not supported`);
}

/** `nameOf` reads the name of the function from the object that the caller chose. */
export function toolChoiceOf(choice: JsonValue | undefined, nameOf: (choice: JsonObject) => string): ToolChoice | undefined {
  if (isAbsent(choice)) return undefined;
  if (typeof choice === "string") {
    return { kind: choiceAt(choice, "tool_choice", ["auto", "none", "required"]) };
  }
  const chosen = objectAt(choice, "tool_choice");
  requireType(chosen, "function", "tool_choice");
  return { kind: "tool", name: nameOf(chosen) };
}

/** The description becomes that of the schema: other formats have no field for it. */
export function schemaFormatOf(format: JsonObject, field: string): ResponseFormat {
  const { name, schema, strict } = format;
  const description = optionalTextAt(format.description, `${field}.description`);
  const plain = optionalObjectAt(schema, `${field}.schema`) ?? {};
  return {
    kind: "json_schema",
    name: textAt(name, `${field}.name`),
    schema: description === undefined ? plain : { description, ...plain },
    strict: optionalBooleanAt(strict, `${field}.strict`),
  };
}

/** Some models have higher efforts than "high". */
export function effortOf(effort: JsonValue | undefined, field: string): ReasoningEffort | undefined {
  if (isAbsent(effort)) return undefined;
  return effort === "xhigh" || effort === "max" ? "high" : choiceAt(effort, field, REASONING_EFFORTS);
}

/** The arguments of a call as JSON text. Some servers send an empty text for no arguments, and clients repeat it. */
export function callArgumentsOf(text: JsonValue | undefined, field: string): string {
  return textAt(text, field) || "{}";
}

export function imageDetailOf(detail: JsonValue | undefined, field: string): ImageDetail | undefined {
  return isAbsent(detail) ? undefined : choiceAt(detail, field, IMAGE_DETAILS);
}

/** A list of only texts becomes one text, so that a string and its parts are the same prompt. */
export function joinedTexts(parts: readonly ContentPart[]): PromptMessage["content"] {
  let text = "";
  // A request may have many thousands of messages: flatMap takes several times as long.
  for (const part of parts) {
    if (part.kind !== "text") return parts;
    text += part.text;
  }
  return text;
}
