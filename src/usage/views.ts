import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { formatMicros } from "../domain/money.ts";
import { QUARTER_MS } from "../domain/periods.ts";
import type { UsageSum } from "./sums.ts";

/** The public counts of tokens include their details; the stored ones are disjoint. */
export function inclusiveTokensOf(sum: Pick<UsageSum, "input" | "cached_input" | "cache_write" | "output" | "reasoning">) {
  return { input: sum.input + sum.cached_input + sum.cache_write, output: sum.output + sum.reasoning };
}

/** For operators. The margin counts the charges whose cost is known. */
export function viewMargin(sum: UsageSum) {
  const { upstream_cost_micros: upstreamCostMicros, uncosted_micros: uncostedMicros } = sum;
  const marginMicros = marginOf(sum);
  return {
    upstream: sum.upstream,
    upstreamCostMicros,
    upstreamCost: formatMicros(upstreamCostMicros),
    uncostedMicros,
    marginMicros,
    margin: formatMicros(marginMicros),
  };
}

export function marginOf(sum: Pick<UsageSum, "cost_micros" | "uncosted_micros" | "upstream_cost_micros">): bigint {
  return sum.cost_micros - sum.uncosted_micros - sum.upstream_cost_micros;
}

export function viewUsage(sum: UsageSum) {
  const tokens = inclusiveTokensOf(sum);
  return {
    start: timestampFromMs(sum.start * QUARTER_MS),
    keyId: sum.key_id,
    model: sum.model,
    user: sum.user_name,
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
