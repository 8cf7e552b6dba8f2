import type { TokenUsage } from "../../domain/prompt.ts";

/** JSON from a server that may be anything: what is not as expected reads as undefined, and nothing throws. */
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

/** A number of tokens: what is charged goes by it, so nothing is rounded, parsed or guessed. */
export function asCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Both numbers or none. */
export function usageOf(inputTokens: unknown, outputTokens: unknown): TokenUsage | undefined {
  const input = asCount(inputTokens);
  const output = asCount(outputTokens);
  return input === undefined || output === undefined
    ? undefined
    : { inputTokens: input, outputTokens: output };
}
