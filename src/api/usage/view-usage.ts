import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { formatMicros } from "../../domain/money.ts";
import { QUARTER_MS } from "../../domain/quarter.ts";
import type { UsageSum } from "../../store/group-sums.ts";

/** The public counts of tokens include their details; the stored ones are disjoint. */
export function inclusiveTokensOf(
  sum: Pick<UsageSum, "input" | "cached_input" | "cache_write" | "output" | "reasoning">,
) {
  return { input: sum.input + sum.cached_input + sum.cache_write, output: sum.output + sum.reasoning };
}

export function viewUsage(sum: UsageSum) {
  const tokens = inclusiveTokensOf(sum);
  return {
    start: timestampFromMs(sum.start * QUARTER_MS),
    keyId: sum.key_id,
    model: sum.model,
    user: sum.user_id,
    requests: sum.requests,
    inputTokens: tokens.input,
    cachedInputTokens: sum.cached_input,
    outputTokens: tokens.output,
    reasoningTokens: sum.reasoning,
    cacheWriteTokens: sum.cache_write,
    imageTokens: sum.image_tokens,
    costMicros: sum.cost_micros,
    cost: formatMicros(sum.cost_micros),
  };
}
