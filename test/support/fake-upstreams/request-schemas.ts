import { Ajv, type ValidateFunction } from "ajv";
import type { RemoteKind } from "../../../src/domain/model.ts";

/**
 * The published request formats of both kinds of upstream, without null members: some servers refuse null,
 * and no member needs it. No object accepts a member that the format does not name.
 */
const ajv = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true });

const text = { type: "string" };
const anyJson = { type: "object" };
const count = { type: "integer", minimum: 1 };

type Schema = Readonly<Record<string, unknown>>;

function object(properties: Record<string, Schema>, required: readonly string[]): Schema {
  return { type: "object", properties, required, additionalProperties: false };
}

function list(items: Schema, minItems = 0): Schema {
  return { type: "array", items, minItems };
}

function either(...of: readonly Schema[]): Schema {
  return { anyOf: of };
}

const openaiText = object({ type: { const: "text" }, text }, ["type", "text"]);
const imageUrl = object({ url: text, detail: { enum: ["auto", "low", "high"] } }, ["url"]);
const openaiPart = either(
  openaiText,
  object({ type: { const: "image_url" }, image_url: imageUrl }, ["type", "image_url"]),
);
const toolCall = object(
  {
    id: text,
    type: { const: "function" },
    function: object({ name: text, arguments: text }, ["name", "arguments"]),
  },
  ["id", "type", "function"],
);
const openaiMessage = either(
  object(
    { role: { enum: ["system", "developer"] }, content: either(text, list(openaiText, 1)), name: text },
    ["role", "content"],
  ),
  object({ role: { const: "user" }, content: either(text, list(openaiPart, 1)), name: text }, [
    "role",
    "content",
  ]),
  object(
    {
      role: { const: "assistant" },
      content: either(text, list(openaiText, 1)),
      name: text,
      refusal: text,
      tool_calls: list(toolCall, 1),
    },
    ["role"],
  ),
  object({ role: { const: "tool" }, content: either(text, list(openaiText, 1)), tool_call_id: text }, [
    "role",
    "content",
    "tool_call_id",
  ]),
);
const openaiTool = object(
  {
    type: { const: "function" },
    function: object({ name: text, description: text, parameters: anyJson, strict: { type: "boolean" } }, [
      "name",
    ]),
  },
  ["type", "function"],
);

const openaiRequest = object(
  {
    model: text,
    messages: list(openaiMessage, 1),
    max_tokens: count,
    max_completion_tokens: count,
    temperature: { type: "number", minimum: 0, maximum: 2 },
    top_p: { type: "number", minimum: 0, maximum: 1 },
    stop: either(text, { ...list(text, 1), maxItems: 4 }),
    stream: { type: "boolean" },
    stream_options: object({ include_usage: { type: "boolean" } }, []),
    tools: list(openaiTool, 1),
    tool_choice: either({ enum: ["none", "auto", "required"] }, anyJson),
    parallel_tool_calls: { type: "boolean" },
    response_format: anyJson,
    seed: { type: "integer" },
    presence_penalty: { type: "number", minimum: -2, maximum: 2 },
    frequency_penalty: { type: "number", minimum: -2, maximum: 2 },
    reasoning_effort: { enum: ["none", "minimal", "low", "medium", "high"] },
    user: text,
  },
  ["model", "messages"],
);

const cacheControl = object({ type: { const: "ephemeral" }, ttl: { enum: ["5m", "1h"] } }, ["type"]);
const anthropicText = object({ type: { const: "text" }, text, cache_control: cacheControl }, [
  "type",
  "text",
]);
const anthropicTool = object(
  { name: text, description: text, input_schema: anyJson, cache_control: cacheControl },
  ["name", "input_schema"],
);

const anthropicRequest = object(
  {
    model: text,
    max_tokens: count,
    messages: list(
      object({ role: { enum: ["user", "assistant"] }, content: either(text, list(anthropicText, 1)) }, [
        "role",
        "content",
      ]),
      1,
    ),
    system: either(text, list(anthropicText, 1)),
    temperature: { type: "number", minimum: 0, maximum: 1 },
    top_k: { type: "integer", minimum: 0 },
    top_p: { type: "number", minimum: 0, maximum: 1 },
    stop_sequences: list(text, 1),
    stream: { type: "boolean" },
    tools: list(anthropicTool, 1),
    tool_choice: anyJson,
    thinking: anyJson,
    output_config: anyJson,
    metadata: object({ user_id: text }, []),
  },
  ["model", "max_tokens", "messages"],
);

const VALIDATORS: Readonly<Record<RemoteKind, ValidateFunction>> = {
  openai: ajv.compile(openaiRequest),
  anthropic: ajv.compile(anthropicRequest),
};

/** The errors that a strict server of this kind reports for the body; empty for a valid body. */
export function requestProblems(kind: RemoteKind, body: unknown): string[] {
  const validate = VALIDATORS[kind];
  validate(body);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}
