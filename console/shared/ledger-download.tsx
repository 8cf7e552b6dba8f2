import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { Button } from "./button.tsx";
import { csvOf } from "./csv.ts";
import { Dialog, ProblemNotice, useAction } from "./dialog.tsx";
import type { LedgerRequest } from "./ledger-filters.tsx";
import type { LedgerSource } from "./ledger-list.tsx";
import { numberText } from "./money.tsx";
import { problemOf } from "./problem.ts";
import { openSavedFile, type SavedFile } from "./saved-file.ts";

/** The entries that one call reads. */
export const PAGE_SIZE = 1_000;

/** The entries of a file that is kept in memory: about 12 MB. */
const MAX_IN_MEMORY = 50_000;

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

/** A part of the ledger that becomes a file. */
type Part = { readonly number: number; readonly pageToken: string };

/** Closing the dialog cancels the download. */
function DownloadDialog({ source, request, note, onClose }: DownloadDialogProps) {
  const [part, setPart] = useState<Part>({ number: 1, pageToken: "" });
  const [loaded, setLoaded] = useState(0);
  const controller = useMemo(() => new AbortController(), []);
  useEffect(() => () => controller.abort(), [controller]);
  const { isBusy, problem, perform } = useAction();
  const save = async () => {
    const file = await openSavedFile(part.number === 1 ? "ledger.csv" : `ledger-${part.number}.csv`);
    if (!file) return;
    setLoaded(0);
    const pageToken = await savePart(file, part.pageToken, {
      load: (token) => source.list({ ...request, pageToken: token, pageSize: PAGE_SIZE }, controller),
      signal: controller.signal,
      onProgress: setLoaded,
    });
    if (pageToken === "") onClose();
    else setPart({ number: part.number + 1, pageToken });
  };
  return (
    <Dialog title="Download the ledger as CSV" onClose={onClose}>
      <div class="dialog-body">
        <p>The file contains all entries that match the filters. {note}</p>
        <p role="status">
          {isBusy && `${numberText(loaded)} entries loaded`}
          {!isBusy && part.number > 1 && moreText(part.number)}
        </p>
        {problem && <ProblemNotice problem={problem} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" isBusy={isBusy} onClick={() => void perform(save)}>
            {part.number === 1 ? "Download" : `Download part ${part.number}`}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function moreText(number: number): string {
  const saved = number === 2 ? "Part 1 is saved." : `Parts 1 to ${number - 1} are saved.`;
  return `${saved} There are more entries: a file has at most ${numberText(MAX_IN_MEMORY)} of them in this browser.`;
}

type Download = {
  readonly load: (pageToken: string) => ReturnType<LedgerSource["list"]>;
  readonly signal: AbortSignal;
  readonly onProgress: (entries: number) => void;
};

/** Writes the pages from this one on, and returns the first page that does not fit the file; empty if all do. */
async function savePart(
  file: SavedFile,
  firstPage: string,
  { load, signal, onProgress }: Download,
): Promise<string> {
  const maxEntries = file.isOnDisk ? Number.POSITIVE_INFINITY : MAX_IN_MEMORY;
  let pageToken = firstPage;
  let saved = 0;
  try {
    await file.write(csvOf([HEADER]));
    do {
      const page = await waitForSlot(signal, () => load(pageToken));
      await file.write(csvOf(page.entries.map(rowOf)));
      saved += page.entries.length;
      onProgress(saved);
      pageToken = page.nextPageToken;
    } while (pageToken !== "" && saved < maxEntries);
  } catch (error) {
    await file.discard();
    throw error;
  }
  await file.finish();
  return pageToken;
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
  "cache_write_1h_tokens",
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
