import type { JsonValue } from "../domain/json.ts";
import { memberTable, noEffect, only, read, refused, tools } from "./request-members.ts";
import { isObject } from "./untyped-members.ts";

/**
 * The members of requests in the formats of OpenAI and Anthropic: what their SDKs know, and what this server does with it. The
 * tables decide what is refused and what is ignored, and `npm run generate` writes them into the documents.
 */

const LIMIT = refused("max_cost_micros", "refused: only the native API has it");
const OUTPUT_LIMIT =
  "at least 1. A value above `max_output_tokens` of the model is lowered to it; the header `x-vx-max-tokens` then has the limit";
const END_USER = "the end user in the ledger; `user` takes precedence. More than 128 characters are stored as their SHA-256";
const LEFT_OUT = "Tools of other types are left out if `tool_choice` is absent or `auto`, and refused otherwise";
const UNLESS_LISTED = "refused, unless `extra_fields` of the model lists them";

const oneOf = (...values: readonly JsonValue[]) =>
  [(value: JsonValue) => values.includes(value), values.map((value) => JSON.stringify(value)).join(" or ")] as const;
const emptyList = [(value: JsonValue) => Array.isArray(value) && value.length === 0, "[]"] as const;
const emptyObject = [(value: JsonValue) => isObject(value) && Object.keys(value).length === 0, "{}"] as const;
const listOf = (item: string) =>
  [(value: JsonValue) => Array.isArray(value) && value.every((one) => one === item), JSON.stringify([item])] as const;
/** Called by the model itself, and not by a program that a hosted tool runs. */
const direct = [(value: JsonValue) => isObject(value) && value.type === "direct", '{"type": "direct"}'] as const;

export const CHAT = memberTable(
  read("model", "an id or an alias"),
  read("messages", "1 to `max_messages` of the model (200, at most 2,000)"),
  read("messages[].role", "`system`, `developer` (the same as `system`), `user`, `assistant`, `tool`; `function` is refused"),
  read(
    "messages[].content",
    "a string, or 1 to 1,000 parts: `text`; `image_url` in messages of users, with an https or data URL (PNG, JPEG, GIF, WebP) and `detail`; `refusal` in messages of assistants. Texts without an image are joined. At most 400,000 characters in a message, tool calls and reasoning included. An empty text is accepted. Audio, files and other parts are refused. Null or absent is accepted only beside `tool_calls` or `refusal`",
  ),
  read(
    "messages[].content[].type messages[].content[].text messages[].content[].refusal messages[].content[].image_url messages[].content[].image_url.url messages[].content[].image_url.detail",
    "as the type of the part requires",
  ),
  read(
    "messages[].tool_calls messages[].tool_call_id",
    "of assistants, and of the results; empty arguments count as `{}`; each result answers a call of the last assistant message. Custom calls are refused",
  ),
  read(
    "messages[].tool_calls[].id messages[].tool_calls[].type messages[].tool_calls[].function messages[].tool_calls[].function.name messages[].tool_calls[].function.arguments",
    "required",
  ),
  read("messages[].reasoning_content messages[].refusal", "the reasoning or the refusal of an assistant, as in the reply"),
  noEffect(
    "messages[].name messages[].annotations messages[].parsed messages[].content[].prompt_cache_breakpoint messages[].tool_calls[].function.parsed_arguments",
  ),
  refused("messages[].function_call messages[].audio"),
  read("max_tokens max_completion_tokens", `synonyms, ${OUTPUT_LIMIT}. If both are given, they must be equal`),
  read("temperature top_p presence_penalty frequency_penalty seed", "supported"),
  read("stop", "a string, or a list of up to 4, of 1 to 200 characters each"),
  tools("function", `up to 256 functions, with or without \`strict\`. ${LEFT_OUT}`),
  read(
    "tools[].type tools[].function tools[].function.name tools[].function.description tools[].function.parameters tools[].function.strict",
    "the function",
  ),
  read("tool_choice", "`none`, `auto`, `required`, or a function of `tools`; `allowed_tools` and custom tools are refused"),
  read("tool_choice.type tool_choice.function tool_choice.function.name", "the function"),
  read("parallel_tool_calls", "supported"),
  read("response_format response_format.type", "`text`, `json_object`, `json_schema`"),
  read(
    "response_format.json_schema response_format.json_schema.name response_format.json_schema.description response_format.json_schema.schema response_format.json_schema.strict",
    "the schema of the reply",
  ),
  read("reasoning_effort", "`none`, `minimal`, `low`, `medium`, `high`; `xhigh` and `max` count as `high`"),
  read("stream stream_options stream_options.include_usage", "supported; `stream_options` without `stream` is ignored"),
  read("user safety_identifier", END_USER),
  only("n", ...oneOf(1)),
  only("top_logprobs", ...oneOf(0)),
  only("logprobs store", ...oneOf(false)),
  only("logit_bias", ...emptyObject),
  only("functions", ...emptyList),
  only("function_call", ...oneOf("none", "auto")),
  only("modalities", ...listOf("text")),
  only("service_tier", ...oneOf("auto", "default")),
  only("verbosity", ...oneOf("medium")),
  refused("audio web_search_options moderation"),
  noEffect(
    "metadata prompt_cache_key prompt_cache_options prompt_cache_retention prediction stream_options.include_obfuscation",
    "no effect, unless `extra_fields` of the model lists them",
  ),
  LIMIT,
);

export const RESPONSES = memberTable(
  read("model", "an id or an alias"),
  read(
    "input",
    "a text, or items: messages with `input_text`, `input_image` (URL or data URL), `output_text` and `refusal`; `function_call`; `function_call_output` with a text or parts; `reasoning`. `item_reference` (see [AI SDK](clients.md)), files, audio and items of hosted tools are refused. Items of one reply, such as parallel calls, count as one message for `max_messages`",
  ),
  read(
    "input[].type input[].role input[].content input[].call_id input[].name input[].arguments input[].output input[].summary input[].encrypted_content",
    "as the type of the item requires",
  ),
  read(
    "input[].content[].type input[].content[].text input[].content[].refusal input[].content[].image_url input[].content[].detail input[].output[].type input[].output[].text input[].output[].refusal input[].output[].image_url input[].output[].detail input[].summary[].text",
    "as the type of the part requires",
  ),
  read("input[].content[].file_id input[].output[].file_id", "refused: use `image_url`"),
  refused("input[].namespace"),
  only("input[].async", ...oneOf(false)),
  only("input[].caller", ...direct),
  noEffect(
    "input[].id input[].status input[].phase input[].parsed_arguments input[].content[].annotations input[].content[].logprobs input[].content[].parsed input[].content[].prompt_cache_breakpoint input[].output[].prompt_cache_breakpoint input[].summary[].type",
  ),
  read("instructions", "a system message before the input"),
  tools("function", `up to 256 functions, in the flat form. ${LEFT_OUT}`),
  read("tools[].type tools[].name tools[].description tools[].parameters tools[].strict", "the function"),
  only("tools[].allowed_callers", ...listOf("direct")),
  only("tools[].async tools[].defer_loading", ...oneOf(false)),
  refused("tools[].output_schema"),
  read("tool_choice tool_choice.type tool_choice.name", "as in chat completions, in the flat form"),
  read("parallel_tool_calls", "as in chat completions"),
  read("text text.format text.format.type", "`text`, `json_object`, `json_schema`"),
  read("text.format.name text.format.description text.format.schema text.format.strict", "the schema of the text"),
  only("text.verbosity", ...oneOf("medium")),
  read(
    "reasoning reasoning.effort reasoning.summary",
    "the effort as in chat completions; the summary is sent to upstreams of the kind `openai-responses`, and the response has the reasoning that the model shows",
  ),
  only("reasoning.context", ...oneOf("auto")),
  only("reasoning.mode", ...oneOf("standard")),
  refused("reasoning.generate_summary", "refused: use `reasoning.summary`"),
  read(
    "include",
    "`reasoning.encrypted_content`: an opaque form of the reasoning, which the next request sends back; other values are refused",
  ),
  read("max_output_tokens temperature top_p stream", "as in chat completions"),
  read("user safety_identifier", END_USER),
  read("metadata prompt_cache_key", "repeated in the response; `metadata` has up to 16 texts of 512 characters"),
  only("store background", ...oneOf(false)),
  read("previous_response_id", "refused: responses are not stored"),
  refused("conversation prompt max_tool_calls moderation"),
  only("truncation", ...oneOf("disabled")),
  only("top_logprobs", ...oneOf(0)),
  only("service_tier", ...oneOf("auto", "default")),
  only("context_management", ...emptyList),
  refused("access_programs image prompt_cache_options", UNLESS_LISTED),
  noEffect("prompt_cache_retention stream_options"),
  LIMIT,
);

export const COMPLETIONS = memberTable(
  read("model", "an id or an alias"),
  read("prompt", "a string, or a list of one; at most 400,000 characters. Tokens of the encoding `cl100k_base` are decoded"),
  read(
    "suffix",
    "the text after the completion: the model generates the text between prompt and suffix, if the upstream supports that",
  ),
  read(
    "max_tokens",
    "as for a chat completion. The default is not OpenAI's 16 tokens, so that completions are not cut off unexpectedly",
  ),
  read(
    "stop temperature top_p seed presence_penalty frequency_penalty user stream stream_options stream_options.include_usage",
    "as for a chat completion",
  ),
  only("n best_of", ...oneOf(1)),
  only("echo", ...oneOf(false)),
  only("logit_bias", ...emptyObject),
  refused("logprobs"),
  noEffect("stream_options.include_obfuscation"),
);

export const EMBEDDINGS = memberTable(
  read("model", "a model with the capability `embeddings`"),
  read(
    "input",
    "a text, or a list of 1 to 2,048 texts (256 with an `Idempotency-Key`), each with 1 to 400,000 characters that fit the context window. Lists of tokens of the encoding `cl100k_base`, which LangChain sends, are decoded to texts",
  ),
  read("dimensions", "1 to 8,192, if the upstream supports it; at most 4,194,304 values in all vectors"),
  read("encoding_format", "`float` or `base64`, which the SDKs request: little-endian 32-bit floats"),
  read("user", "the end user in the ledger"),
);

const textAndImage = (prefix: string) =>
  ["type", "text", "source", "source.type", "source.media_type", "source.data", "source.url", "cache_control"]
    .map((name) => prefix + name)
    .join(" ");

export const MESSAGES = memberTable(
  read("model", "an id or an alias"),
  read(
    "messages messages[].role messages[].content",
    "at most `max_messages` of the model; blocks `text`, `image` (base64 or URL), `tool_use`, `tool_result` (text and images), `thinking`, `redacted_thinking`",
  ),
  read(
    `${textAndImage("messages[].content[].")} messages[].content[].id messages[].content[].name messages[].content[].input messages[].content[].tool_use_id messages[].content[].content messages[].content[].is_error messages[].content[].thinking messages[].content[].signature messages[].content[].data ${textAndImage("messages[].content[].content[].")}`,
    "as the type of the block requires",
  ),
  only("messages[].content[].caller", ...direct),
  refused(
    "messages[].content[].toolset_name messages[].content[].transformations messages[].content[].content[].transformations",
  ),
  noEffect(
    "messages[].content[].citations messages[].content[].content[].citations messages[].content[].parsed_output system[].citations",
  ),
  read("max_tokens", OUTPUT_LIMIT),
  read("system system[].type system[].text system[].cache_control", "a string, or text blocks"),
  read("stop_sequences", "at most 4"),
  read("temperature top_p top_k stream", "as in Anthropic's API"),
  tools("custom", `up to 256 tools with an \`input_schema\`. ${LEFT_OUT}`),
  read("tools[].type tools[].name tools[].description tools[].input_schema tools[].strict tools[].cache_control", "the tool"),
  only("tools[].allowed_callers", ...listOf("direct")),
  only("tools[].defer_loading", ...oneOf(false)),
  only("tools[].input_examples", ...emptyList),
  read("tool_choice tool_choice.type tool_choice.name tool_choice.disable_parallel_tool_use", "`auto`, `any`, `tool`, `none`"),
  read("thinking thinking.type thinking.budget_tokens", "`enabled` with `budget_tokens`, `adaptive`, `disabled`"),
  only("thinking.display", ...oneOf("summarized")),
  read(
    "output_config output_config.effort output_config.format output_config.format.type output_config.format.schema",
    "the effort, and a JSON schema",
  ),
  refused("output_format", "refused: use `output_config.format`"),
  read("metadata metadata.user_id", "the end user in the ledger; an id of more than 128 characters as its SHA-256"),
  only("service_tier", ...oneOf("auto", "standard_only")),
  only("speed", ...oneOf("standard")),
  only("mcp_servers", ...emptyList),
  refused("container"),
  read("thread", "refused: conversations are not stored. The SDKs then send the whole conversation"),
  refused("diagnostics inference_geo", UNLESS_LISTED),
  noEffect("cache_control tools[].eager_input_streaming"),
  LIMIT,
);
