import { DomainError } from "../domain/errors.ts";
import { nextTurn } from "../domain/fairness.ts";
import { isJsonLonger } from "../domain/json.ts";
import { type Capability, type Model, TASK_KINDS } from "../domain/model.ts";
import {
  type Format,
  isShortText,
  MAX_MESSAGE_CHARACTERS,
  NO_OPTIONS,
  type PromptOptions,
  type Task,
  type Tool,
} from "../domain/prompt.ts";
import { hasMoreCharacters } from "../domain/text.ts";
import type { AdmittedKey } from "../keys/admit.ts";
import type { PromptProblem } from "../upstreams/dialect.ts";
import { problemWith } from "../upstreams/dialects.ts";
import { checkConversation } from "./check-conversation.ts";
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

export function isAllowed({ models }: Pick<AdmittedKey, "models">, model: Model): boolean {
  return models === undefined || models.includes(model.id);
}

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
  if (reasoningEffort !== "none") requireCapability(model, "reasoning", fieldName(format, "reasoning_effort"));
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
  const place = message === undefined ? fieldName(format, field) : (fields?.[message] ?? `messages[${message}]`);
  throw DomainError.ofField(place, description);
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
  throw DomainError.ofField(field, `requires the capability "${capability}", which "${model.id}" does not have`);
}

const MAX_INPUTS = 2_048;
/** The vectors are stored with the other answers for a retry. */
const MAX_KEPT_INPUTS = 256;
/** Of all vectors of a request together. */
export const MAX_VALUES = 4_194_304;

/** Refuses a task that the model cannot do, with the name of an API that it can be used with. */
function checkTask({ id, capabilities, upstreams }: Model, task: Task | undefined): void {
  const createsVectors = capabilities.includes("embeddings");
  if (task?.kind === "embed") {
    if (createsVectors) return;
    throw refusal(`"${id}" does not have the capability "embeddings"`);
  }
  if (createsVectors) throw refusal(`"${id}" only creates embeddings: call /v1/embeddings or /v1/embed`);
  if (task && !upstreams.every(({ kind }) => TASK_KINDS.includes(kind))) {
    throw refusal(`"${id}" has an upstream without completions: call /v1/chat/completions`);
  }
}

/** The texts are the messages of the request. */
function checkEmbedding({ messages, fields }: GenerationRequest, { dimensions = 1 }: Extract<Task, { kind: "embed" }>): void {
  if (messages.length === 0) throw DomainError.ofField("input", "must not be empty");
  if (messages.length > MAX_INPUTS) throw DomainError.ofField("input", `must have at most ${MAX_INPUTS} texts`);
  for (const [i, { content }] of messages.entries()) {
    const field = fields?.[i] ?? `input[${i}]`;
    if (typeof content !== "string" || content === "") throw DomainError.ofField(field, "must not be empty");
    if (hasMoreCharacters([content], MAX_MESSAGE_CHARACTERS)) {
      throw DomainError.ofField(field, `must be at most ${MAX_MESSAGE_CHARACTERS} characters`);
    }
  }
  if (messages.length * dimensions > MAX_VALUES) {
    throw DomainError.ofField("dimensions", `times the number of texts must be at most ${MAX_VALUES}`);
  }
}

/** An answer with many vectors is too large to be stored for a retry. */
export function checkStorable({ messages, options }: GenerationRequest): void {
  if (options.task?.kind !== "embed" || messages.length <= MAX_KEPT_INPUTS) return;
  throw DomainError.ofField("input", `must have at most ${MAX_KEPT_INPUTS} texts with an idempotency key`);
}

function refusal(description: string): DomainError {
  return DomainError.ofField("model", description);
}

/** Fields of native requests that other formats name differently. */
type Field = "messages" | "response_format" | "reasoning_effort" | "stop" | "user";

const NAMES: Readonly<Record<Format, Readonly<Partial<Record<Field, string>>>>> = {
  native: {},
  "openai-chat": {},
  "openai-responses": {
    messages: "input",
    response_format: "text.format",
    reasoning_effort: "reasoning.effort",
  },
  "anthropic-messages": {
    response_format: "output_config.format",
    reasoning_effort: "thinking",
    stop: "stop_sequences",
    user: "metadata.user_id",
  },
};

/** The name of a tool. In chat completions, the function of a tool is an object of its own. */
function toolNameField(format: Format, i: number): string {
  return format === "openai-chat" ? `tools[${i}].function.name` : `tools[${i}].name`;
}

function schemaNameField(format: Format): string {
  const member = format === "openai-chat" ? "json_schema.name" : "name";
  return `${fieldName(format, "response_format")}.${member}`;
}

export function fieldName(format: Format, field: string): string {
  return (NAMES[format] as Readonly<Record<string, string>>)[field] ?? field;
}
