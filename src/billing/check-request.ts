import { hasMoreCharacters } from "../domain/characters.ts";
import { checkConversation, isShortText, MAX_MESSAGE_CHARACTERS } from "../domain/conversation.ts";
import { DomainError } from "../domain/errors.ts";
import { isJsonLonger } from "../domain/json-text.ts";
import type { Capability, Model } from "../domain/model.ts";
import { nextTurn } from "../domain/next-turn.ts";
import { type Format, NO_OPTIONS, type PromptOptions, type Tool } from "../domain/prompt.ts";
import { problemWith } from "../upstreams/dialects.ts";
import type { PromptProblem } from "../upstreams/prompt-problem.ts";
import { checkEmbedding, checkTask } from "./check-task.ts";
import { fieldName, schemaNameField, toolNameField } from "./field-names.ts";
import type { GenerationRequest } from "./generation-request.ts";

export const MAX_TOOLS = 256;
/** The tools and the schema of the reply together, as JSON: they are part of the prompt. */
const MAX_DEFINITION_CHARACTERS = 1_048_576;
/** Definitions of this size are measured in a millisecond. */
const AT_ONCE_CHARACTERS = 65_536;
const TOOL_NAME = /^[A-Za-z0-9_-]{1,128}$/;
const SCHEMA_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** The ledger stores the user. */
const USER = /^\P{Cc}{0,128}$/u;

/**
 * The checks that requests of all formats share, made before anything is held. The codec of a format checks the
 * types of its fields before. Returns a promise if there is more to check than texts.
 */
export function checkRequest(model: Model, request: GenerationRequest): Promise<void> | undefined {
  const { format, messages, options } = request;
  if (!USER.test(request.user)) {
    const description = "must be at most 128 characters, without control characters";
    throw DomainError.ofField(fieldName(format, "user"), description);
  }
  checkTask(model, options.task);
  if (options.task?.kind === "embed") {
    checkEmbedding(request, options.task);
    return undefined;
  }
  // The .proto limits native requests.
  if (format !== "native" && messages.length > model.maxMessages) {
    const description = `must have at most ${model.maxMessages} messages for "${model.id}"`;
    throw DomainError.ofField(fieldName(format, "messages"), description);
  }
  if (options !== NO_OPTIONS || !messages.every(isShortText)) return checkContents(model, request);
  checkUpstreams(model, request);
  return undefined;
}

async function checkContents(model: Model, request: GenerationRequest): Promise<void> {
  const { format, options } = request;
  if (options !== NO_OPTIONS) await checkOptions(model, options, format);
  const images = await checkConversation(request);
  if (images > 0) requireCapability(model, "images", fieldName(format, "messages"));
  checkUpstreams(model, request);
}

async function checkOptions(model: Model, options: PromptOptions, format: Format): Promise<void> {
  const { tools = [], responseFormat, reasoningEffort = "none", suffix = "" } = options;
  const formatField = fieldName(format, "response_format");
  checkExtraFields(model, options);
  checkTools(tools, format);
  checkToolChoice(options);
  if (responseFormat?.kind === "json_schema" && !SCHEMA_NAME.test(responseFormat.name)) {
    throw DomainError.ofField(schemaNameField(format), nameRule(64));
  }
  if (await areDefinitionsTooLong(options)) {
    const field = tools.length > 0 ? "tools" : formatField;
    const description = `must be at most ${MAX_DEFINITION_CHARACTERS} characters of JSON, tools and schema together`;
    throw DomainError.ofField(field, description);
  }
  if (hasMoreCharacters([suffix], MAX_MESSAGE_CHARACTERS)) {
    throw DomainError.ofField("suffix", `must be at most ${MAX_MESSAGE_CHARACTERS} characters`);
  }
  if (tools.length > 0) requireCapability(model, "tools", "tools");
  if (responseFormat) requireCapability(model, "json_schema", formatField);
  if (reasoningEffort !== "none")
    requireCapability(model, "reasoning", fieldName(format, "reasoning_effort"));
}

/** Measuring large definitions, and the work before and after it, each take up to 20 ms: they have turns of their own. */
async function areDefinitionsTooLong({ tools = [], responseFormat }: PromptOptions): Promise<boolean> {
  const definitions = [
    ...tools.flatMap(({ name, description = "", parameters = {} }) => [name, description, parameters]),
    responseFormat?.kind === "json_schema" ? responseFormat.schema : {},
  ];
  if (!isJsonLonger(definitions, AT_ONCE_CHARACTERS)) return false;
  await nextTurn();
  const isTooLong = isJsonLonger(definitions, MAX_DEFINITION_CHARACTERS);
  await nextTurn();
  return isTooLong;
}

/** A call is refused if no upstream of its model can get the prompt; it must not lose a part that the reply depends on. */
function checkUpstreams(model: Model, request: GenerationRequest): void {
  const { format, fields } = request;
  let problem: PromptProblem | undefined;
  for (const settings of model.upstreams) {
    const other = problemWith(settings, request, model);
    if (!other) return;
    problem ??= other;
  }
  if (!problem) return;
  const { field, message, description } = problem;
  const place =
    message === undefined ? fieldName(format, field) : (fields?.[message] ?? `messages[${message}]`);
  throw DomainError.ofField(place, description);
}

/** A limit of the native request. With another format it is refused, because it would have no effect. */
const NATIVE_LIMIT = "max_cost_micros";

/** Null counts as absent. */
function checkExtraFields(model: Model, { extraFields }: PromptOptions): void {
  for (const name of [NATIVE_LIMIT, ...(extraFields?.unsupported ?? [])]) {
    if ((extraFields?.fields[name] ?? null) === null || model.extraFields.includes(name)) continue;
    throw DomainError.ofField(name, "is not supported");
  }
}

function checkTools(tools: readonly Tool[], format: Format): void {
  if (tools.length > MAX_TOOLS) throw DomainError.ofField("tools", `must have at most ${MAX_TOOLS} items`);
  const known = new Set<string>();
  for (const [i, { name }] of tools.entries()) {
    if (!TOOL_NAME.test(name)) throw DomainError.ofField(toolNameField(format, i), nameRule(128));
    if (known.has(name)) {
      const description = `must differ from those of the other tools: "${name}"`;
      throw DomainError.ofField(toolNameField(format, i), description);
    }
    known.add(name);
  }
}

function checkToolChoice({ tools = [], toolChoice }: PromptOptions): void {
  if (toolChoice?.kind === "required" && tools.length === 0) {
    throw DomainError.ofField("tool_choice", "requires tools");
  }
  if (toolChoice?.kind === "tool" && !tools.some(({ name }) => name === toolChoice.name)) {
    throw DomainError.ofField("tool_choice", "must be the name of one of the tools");
  }
}

function nameRule(max: number): string {
  return `must be 1 to ${max} letters, digits, "_" or "-"`;
}

function requireCapability(model: Model, capability: Capability, field: string): void {
  if (model.capabilities.includes(capability)) return;
  throw DomainError.ofField(
    field,
    `requires the capability "${capability}", which "${model.id}" does not have`,
  );
}
