import type { TokenUsage } from "../../domain/prompt.ts";

/** Readers for untrusted JSON: an unexpected value is read as undefined, and nothing throws. */
export type JsonObject = { readonly [name: string]: unknown };

export function parseObject(text: string): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

export function firstObject(value: unknown): JsonObject | undefined {
  return Array.isArray(value) ? asObject(value[0]) : undefined;
}

export function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A token count. The charge depends on it, so nothing is rounded, converted or guessed. */
export function asCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Undefined unless both counts are valid. */
export function usageOf(inputTokens: unknown, outputTokens: unknown): TokenUsage | undefined {
  const input = asCount(inputTokens);
  const output = asCount(outputTokens);
  return input === undefined || output === undefined
    ? undefined
    : { inputTokens: input, outputTokens: output };
}
