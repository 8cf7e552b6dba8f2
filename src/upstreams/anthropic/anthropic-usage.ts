import type { Usage } from "../../domain/usage.ts";
import { asCount, asObject, type JsonObject, reportedUsage } from "../http/json-value.ts";

const MAX_ITERATIONS = 256;

/**
 * The usage that the API reports: at the start of a stream, and again at its end with totals that replace those of the
 * start. Cached tokens are not part of its input tokens, so they are added.
 */
export function usageReportedBy(
  start: JsonObject | undefined,
  end: JsonObject | undefined,
): Usage | undefined {
  const latest = (name: string): unknown => end?.[name] ?? start?.[name];
  const cachedInput = asCount(latest("cache_read_input_tokens") ?? 0);
  const cacheWrite = asCount(latest("cache_creation_input_tokens") ?? 0);
  const input = sum(asCount(latest("input_tokens")), cachedInput, cacheWrite);
  const compaction = compactionOf(end);
  return reportedUsage({
    inputTokens: sum(input, compaction.input),
    outputTokens: sum(asCount(end?.output_tokens), compaction.output),
    cachedInput,
    cacheWrite,
    reasoning: asObject(end?.output_tokens_details)?.thinking_tokens,
  });
}

/** The tokens that summarized the context, which are not part of the totals. */
function compactionOf(usage: JsonObject | undefined): {
  input: number | undefined;
  output: number | undefined;
} {
  const iterations = Array.isArray(usage?.iterations) ? usage.iterations.slice(0, MAX_ITERATIONS) : [];
  const compactions = iterations.map(asObject).filter((one) => one?.type === "compaction");
  const total = (...names: string[]) =>
    sum(...compactions.flatMap((one) => names.map((name) => asCount(one?.[name] ?? 0))));
  return {
    input: total("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    output: total("output_tokens"),
  };
}

/** Undefined if a count is invalid. */
function sum(...counts: (number | undefined)[]): number | undefined {
  let total = 0;
  for (const count of counts) {
    if (count === undefined) return undefined;
    total += count;
  }
  return total;
}
