import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { Button } from "./button.tsx";
import { csvOf, download } from "./csv.ts";
import { Dialog, ProblemNotice, useAction } from "./dialog.tsx";
import type { LedgerRequest } from "./ledger-filters.tsx";
import type { LedgerSource } from "./ledger-list.tsx";
import { numberText } from "./money.tsx";
import { problemOf } from "./problem.ts";

/** Of one call. */
export const PAGE_SIZE = 1_000;

type LedgerDownloadProps = {
  readonly source: LedgerSource;
  readonly request: LedgerRequest;
  /** What the download costs. */
  readonly note?: string;
};

/** Saves all entries that match the filters as CSV. */
export function LedgerDownload(props: LedgerDownloadProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Download CSV</Button>
      {isOpen && <DownloadDialog {...props} onClose={() => setOpen(false)} />}
    </>
  );
}

type DownloadDialogProps = LedgerDownloadProps & { readonly onClose: () => void };

/** Closing the dialog cancels the download. */
function DownloadDialog({ source, request, note, onClose }: DownloadDialogProps) {
  const [loaded, setLoaded] = useState(0);
  const controller = useMemo(() => new AbortController(), []);
  useEffect(() => () => controller.abort(), [controller]);
  const { isBusy, problem, perform } = useAction();
  const save = async () => {
    download("ledger.csv", await loadAll(source, request, controller.signal, setLoaded));
    onClose();
  };
  return (
    <Dialog title="Download the ledger as CSV" onClose={onClose}>
      <div class="dialog-body">
        <p>The file contains all entries that match the filters. {note}</p>
        <p role="status">{isBusy && `${numberText(loaded)} entries loaded`}</p>
        {problem && <ProblemNotice problem={problem} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" isBusy={isBusy} onClick={() => void perform(save)}>
            Download
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

/** The file, in a part per page: the browser moves large parts to the disk. */
async function loadAll(
  { list }: LedgerSource,
  request: LedgerRequest,
  signal: AbortSignal,
  onProgress: (entries: number) => void,
): Promise<Blob[]> {
  const parts = [new Blob([csvOf([HEADER])])];
  let loaded = 0;
  let pageToken = "";
  do {
    const page = await waitForSlot(signal, () =>
      list({ ...request, pageToken, pageSize: PAGE_SIZE }, { signal }),
    );
    parts.push(new Blob([csvOf(page.entries.map(rowOf))]));
    loaded += page.entries.length;
    onProgress(loaded);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return parts;
}

/** Makes the call again when the key's rate limit allows it. */
async function waitForSlot<Result>(signal: AbortSignal, call: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const { reason, retryAfterSeconds } = problemOf(error);
      if (reason !== "RATE_LIMIT_EXCEEDED" || retryAfterSeconds === undefined) throw error;
      await new Promise((resolve) => setTimeout(resolve, retryAfterSeconds * 1_000));
      signal.throwIfAborted();
    }
  }
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
  "output_tokens",
  "reasoning_tokens",
  "images",
  "generation_id",
  "request_id",
  "trace_id",
  "id",
];

function rowOf(entry: LedgerEntry): (string | bigint)[] {
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
    entry.outputTokens,
    entry.reasoningTokens,
    entry.images,
    entry.generationId,
    entry.requestId,
    entry.traceId,
    entry.id,
  ];
}
