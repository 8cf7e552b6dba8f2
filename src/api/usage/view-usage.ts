import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { formatMicros } from "../../domain/money.ts";
import { QUARTER_MS } from "../../domain/periods.ts";
import type { UsageSum } from "../../store/usage-sums.ts";

/** The fields of a row. Public counts include their details. */
export function viewUsage(sum: UsageSum) {
  return {
    start: timestampFromMs(sum.start * QUARTER_MS),
    keyId: sum.key_id,
    model: sum.model,
    user: sum.user_id,
    requests: sum.requests,
    inputTokens: sum.input + sum.cached_input + sum.cache_write,
    cachedInputTokens: sum.cached_input,
    outputTokens: sum.output + sum.reasoning,
    reasoningTokens: sum.reasoning,
    cacheWriteTokens: sum.cache_write,
    imageTokens: sum.image_tokens,
    costMicros: sum.cost_micros,
    cost: formatMicros(sum.cost_micros),
  };
}
