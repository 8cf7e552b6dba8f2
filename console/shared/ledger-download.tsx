import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import type { LedgerRequest } from "./ledger-filters.tsx";
import type { LedgerSource } from "./ledger-list.tsx";
import { ListDownload, PAGE_SIZE } from "./list-download.tsx";

type LedgerDownloadProps = {
  readonly source: LedgerSource;
  readonly request: LedgerRequest;
  /** What the download costs. */
  readonly note?: string;
};

/** Saves all entries that match the filters as CSV. */
export function LedgerDownload({ source, request, note }: LedgerDownloadProps) {
  const load = async (pageToken: string, options: { readonly signal: AbortSignal }) => {
    const page = await source.list({ ...request, pageToken, pageSize: PAGE_SIZE }, options);
    return { rows: page.entries, nextPageToken: page.nextPageToken };
  };
  const file = { name: "the ledger", fileName: "ledger", header: HEADER, cellsOf, load, note };
  return <ListDownload file={file} />;
}

const HEADER = [
  "seq",
  "created_at",
  "kind",
  "amount_micros",
  "balance_after_micros",
  "reason",
  "model",
  "key_id",
  "user",
  "input_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "cache_write_1h_tokens",
  "output_tokens",
  "reasoning_tokens",
  "images",
  "generation_id",
  "request_id",
  "trace_id",
  "id",
];

function cellsOf(entry: LedgerEntry): (string | bigint)[] {
  return [
    entry.seq,
    entry.createdAt ? timestampDate(entry.createdAt).toISOString() : "",
    entry.kind,
    entry.amountMicros,
    entry.balanceAfterMicros,
    entry.reason,
    entry.model,
    entry.keyId,
    entry.user,
    entry.inputTokens,
    entry.cachedInputTokens,
    entry.cacheWriteTokens,
    entry.cacheWrite1hTokens,
    entry.outputTokens,
    entry.reasoningTokens,
    entry.images,
    entry.generationId,
    entry.requestId,
    entry.traceId,
    entry.id,
  ];
}
