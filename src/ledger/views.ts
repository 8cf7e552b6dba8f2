import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EntryCostSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { LedgerEntrySchema } from "../../gen/vx/v1/ledger_pb.js";
import { viewOf } from "../api/view.ts";
import { generationIdOf } from "../domain/ids.ts";
import { inputTokensOf, outputTokensOf } from "../domain/price.ts";
import { viewRates } from "../prices/views.ts";
import { type EntryRow, ratesOfEntry, usageOfEntry } from "./store.ts";

export function viewEntry(row: EntryRow): MessageInitShape<typeof LedgerEntrySchema> {
  const { id, seq, kind, amount_micros, balance_after_micros, reason, request_id, key_id, model, created_at } = row;
  const common = { id, seq, kind, amount_micros, balance_after_micros, reason, request_id, key_id, model, created_at };
  return viewOf(
    LedgerEntrySchema,
    common,
    row.kind === "generation" ? viewGeneration(row) : { adjustedEntryId: row.adjusted_id },
  );
}

/** The fields of an entry that only generations have. Public counts include their details. */
function viewGeneration(row: EntryRow): MessageInitShape<typeof LedgerEntrySchema> {
  const usage = usageOfEntry(row);
  return {
    generationId: generationIdOf(row.id),
    user: row.user_name,
    traceId: row.trace_id,
    priceVersion: row.price_version,
    priceTier: BigInt(row.price_tier),
    priceListVersion: row.price_list_version,
    prices: viewRates(ratesOfEntry(row)),
    inputTokens: BigInt(inputTokensOf(usage)),
    outputTokens: BigInt(outputTokensOf(usage)),
    cachedInputTokens: BigInt(usage.cachedInput),
    cacheWriteTokens: BigInt(usage.cacheWrite),
    cacheWrite1hTokens: BigInt(usage.cacheWrite1h),
    reasoningTokens: BigInt(usage.reasoning),
    imageTokens: BigInt(usage.imageTokens),
    images: BigInt(usage.images),
  };
}

/** The upstream of a generation and its cost there, for operators. */
export function viewEntryCost(row: EntryRow): MessageInitShape<typeof EntryCostSchema> {
  const { upstream, upstream_cost_micros: upstreamCostMicros } = row;
  if (upstreamCostMicros === null) return { entryId: row.id, upstream };
  return {
    entryId: row.id,
    upstream,
    upstreamCostMicros,
    marginMicros: -row.amount_micros - upstreamCostMicros,
  };
}
