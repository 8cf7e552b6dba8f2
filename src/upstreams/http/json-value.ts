import { parseJson } from "../../domain/parse-json.ts";
import { type Usage, usageOf } from "../../domain/usage.ts";

/** Readers for untrusted JSON: an unexpected value is read as undefined, and nothing throws. */
export type JsonObject = { readonly [name: string]: unknown };

export function parseObject(text: string): JsonObject | undefined {
  try {
    return asObject(parseJson(text));
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

type ReportedCounts = {
  readonly inputTokens?: unknown;
  readonly outputTokens?: unknown;
  readonly cachedInput?: unknown;
  readonly cacheWrite?: unknown;
  readonly reasoning?: unknown;
  readonly imageTokens?: unknown;
};

/**
 * Undefined unless both totals are valid. A detail that is not a count is ignored. Every prompt has tokens, so a report
 * without any comes from a server that does not count.
 */
export function reportedUsage(counts: ReportedCounts): Usage | undefined {
  const inputTokens = asCount(counts.inputTokens);
  const outputTokens = asCount(counts.outputTokens);
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  if (inputTokens + outputTokens === 0) return undefined;
  return usageOf({
    inputTokens,
    outputTokens,
    cachedInput: asCount(counts.cachedInput),
    cacheWrite: asCount(counts.cacheWrite),
    reasoning: asCount(counts.reasoning),
    imageTokens: asCount(counts.imageTokens),
  });
}
