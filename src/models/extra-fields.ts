import { z } from "zod";

const MAX_EXTRA_FIELDS = 50;

/**
 * Fields of upstream requests that extra_fields must not name, because vx sets them, because they would change
 * which model or which text is charged, or because they refer to a state that vx does not know.
 */
const RESERVED = new Set([
  "background",
  "best_of",
  "conversation",
  "dimensions",
  "encoding_format",
  "frequency_penalty",
  "functions",
  "function_call",
  "include",
  "input",
  "instructions",
  "max_completion_tokens",
  "max_cost_micros",
  "max_output_tokens",
  "max_tokens",
  "messages",
  "model",
  "n",
  "output_config",
  "output_format",
  "parallel_tool_calls",
  "presence_penalty",
  "previous_response_id",
  "prompt",
  "reasoning",
  "reasoning_effort",
  "response_format",
  "seed",
  "stop",
  "stop_sequences",
  "store",
  "stream",
  "stream_options",
  "suffix",
  "system",
  "temperature",
  "text",
  "thinking",
  "tool_choice",
  "tools",
  "top_p",
  "user",
]);

const fieldName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/, "must be the name of a field")
  .refine((name) => !RESERVED.has(name), "is a field that vx sets or refuses");

/** The fields of a request that upstreams get unchanged. */
export const extraFields = z.array(fieldName).max(MAX_EXTRA_FIELDS).default([]);
