import { useEffect, useMemo, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { csvOf } from "./csv.ts";
import { Dialog, ProblemNotice, useAction } from "./dialog.tsx";
import { numberText } from "./money.tsx";
import { problemOf } from "./problem.ts";
import { openSavedFile, type SavedFile } from "./saved-file.ts";
import type { Page } from "./use-pages.ts";

/** The entries that one call reads. */
export const PAGE_SIZE = 1_000;

/** The entries of a file that is kept in memory: about 12 MB. */
const MAX_IN_MEMORY = 50_000;

/** A list as CSV. */
export type ListFile<Row> = {
  /** In texts: "the ledger". */
  readonly name: string;
  /** Without the extension. */
  readonly fileName: string;
  readonly header: readonly string[];
  readonly cellsOf: (row: Row) => readonly (string | bigint)[];
  /** A page of `PAGE_SIZE` entries that match the filters. */
  readonly load: (pageToken: string, options: { readonly signal: AbortSignal }) => Promise<Page<Row>>;
  /** What the download costs. */
  readonly note?: string | undefined;
};

type ListDownloadProps<Row> = { readonly file: ListFile<Row> };

/** Saves all entries that match the filters as CSV. */
export function ListDownload<Row>({ file }: ListDownloadProps<Row>) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Download CSV</Button>
      {isOpen && <DownloadDialog file={file} onClose={() => setOpen(false)} />}
    </>
  );
}

type DownloadDialogProps<Row> = ListDownloadProps<Row> & { readonly onClose: () => void };

/** A part of the list that becomes a file. */
type Part = { readonly number: number; readonly pageToken: string };

/** Closing the dialog cancels the download. */
function DownloadDialog<Row>({ file: list, onClose }: DownloadDialogProps<Row>) {
  const { name, fileName, note } = list;
  const [part, setPart] = useState<Part>({ number: 1, pageToken: "" });
  const [loaded, setLoaded] = useState(0);
  const controller = useMemo(() => new AbortController(), []);
  useEffect(() => () => controller.abort(), [controller]);
  const { isBusy, problem, perform } = useAction();
  const save = async () => {
    const file = await openSavedFile(part.number === 1 ? `${fileName}.csv` : `${fileName}-${part.number}.csv`);
    if (!file) return;
    setLoaded(0);
    const pageToken = await savePart(file, part.pageToken, {
      list,
      signal: controller.signal,
      onProgress: setLoaded,
    });
    if (pageToken === "") onClose();
    else setPart({ number: part.number + 1, pageToken });
  };
  return (
    <Dialog title={`Download ${name} as CSV`} onClose={onClose}>
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

type Download<Row> = {
  readonly list: ListFile<Row>;
  readonly signal: AbortSignal;
  readonly onProgress: (entries: number) => void;
};

/** Writes the pages from this one on, and returns the first page that does not fit the file; empty if all do. */
async function savePart<Row>(file: SavedFile, firstPage: string, { list, signal, onProgress }: Download<Row>): Promise<string> {
  const maxEntries = file.isOnDisk ? Number.POSITIVE_INFINITY : MAX_IN_MEMORY;
  let pageToken = firstPage;
  let saved = 0;
  try {
    await file.write(csvOf([list.header]));
    do {
      const page = await waitForSlot(signal, () => list.load(pageToken, { signal }));
      await file.write(csvOf(page.rows.map(list.cellsOf)));
      saved += page.rows.length;
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
