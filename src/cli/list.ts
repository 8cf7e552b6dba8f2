import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { csvWriterOf } from "../codec/message-csv.ts";
import { usageFailure } from "./failure.ts";
import { printError, printOut } from "./output.ts";
import { combined, option, type Values } from "./parameters.ts";
import { type Column, createTable, type JsonOption, jsonLine } from "./print.ts";
import { positive } from "./values.ts";

const OPTIONS = {
  limit: option("--limit <n>", "the maximum number to print (default: all; with --json, one page)", positive),
  pageSize: option("--page-size <n>", "with --json: the maximum size of the page", positive),
  pageToken: option("--page-token <token>", "with --json: the next_page_token of the previous page"),
};
export const LIST_OPTIONS = combined(OPTIONS, (values) => values);
export type ListOptions = Values<typeof OPTIONS>;

export type PageRequest = { readonly pageSize: number; readonly pageToken: string };

type ListPage = Message & { readonly nextPageToken: string };

type List<Page extends ListPage, Row> = {
  readonly desc: DescMessage;
  readonly fetch: (page: PageRequest) => Promise<Page>;
  readonly rows: (page: Page) => readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** Printed when the list is empty. */
  readonly none: string;
};

const MAX_PAGE_SIZE = 1000;
/** A sorted list is in memory. */
const MAX_SORTED_ROWS = 100_000;

/** With --json, prints one page; otherwise prints all pages as a table. */
export async function printList<Page extends ListPage, Row>(
  options: ListOptions & JsonOption,
  list: List<Page, Row>,
): Promise<void> {
  const { json, limit, pageSize, pageToken = "" } = options;
  if (json) {
    // With 0 the server chooses the size.
    const page = await list.fetch({ pageSize: smaller(pageSize, limit) ?? 0, pageToken });
    await printOut(jsonLine(list.desc, page));
    return;
  }
  if (pageSize !== undefined || pageToken !== "") {
    throw usageFailure("--page-size and --page-token require --json; a table contains all pages, or --limit rows");
  }
  const printed = await printPages(list, limit ?? Number.POSITIVE_INFINITY);
  if (printed === 0) await printError(list.none);
}

/**
 * The first rows in an order that the server does not have. All pages are read, so that `limit` selects among the rows of all
 * pages and cells; only about twice as many rows are kept.
 */
export async function firstRows<Page extends { nextPageToken: string }, Row>(
  { limit = MAX_SORTED_ROWS + 1 }: ListOptions,
  fetch: (page: PageRequest) => Promise<Page>,
  rowsOf: (page: Page) => readonly Row[],
  compare: (one: Row, other: Row) => number,
): Promise<Row[]> {
  let kept: Row[] = [];
  await eachPage(fetch, Number.POSITIVE_INFINITY, async (page) => {
    const rows = rowsOf(page);
    kept.push(...rows);
    if (kept.length > 2 * Math.min(limit, MAX_SORTED_ROWS)) kept = kept.sort(compare).slice(0, limit);
    return { printed: rows.length, isOpen: true };
  });
  if (limit > MAX_SORTED_ROWS && kept.length > MAX_SORTED_ROWS) {
    throw usageFailure(`there are more than ${MAX_SORTED_ROWS} rows to sort; add --limit N or --sort start`);
  }
  return kept.sort(compare).slice(0, limit);
}

type CsvList<Page, Desc extends DescMessage> = {
  readonly fetch: (page: PageRequest) => Promise<Page>;
  readonly desc: Desc;
  readonly rows: (page: Page) => readonly MessageShape<Desc>[];
};

/** Prints all pages as CSV. */
export async function printCsv<Page extends { nextPageToken: string }, Desc extends DescMessage>(
  { json, limit = Number.POSITIVE_INFINITY, pageSize, pageToken }: ListOptions & JsonOption,
  { fetch, desc, rows }: CsvList<Page, Desc>,
): Promise<void> {
  if (json || pageSize !== undefined || pageToken !== undefined) {
    throw usageFailure("--csv contains all pages, or --limit rows; it excludes --json and its options");
  }
  const { header, line } = csvWriterOf(desc);
  await printOut(header);
  await eachPage(fetch, limit, async (page) => {
    const lines = rows(page);
    return { printed: lines.length, isOpen: await printOut(lines.map(line).join("")) };
  });
}

/** Prints page by page, so that memory does not grow with the length of the list. */
async function printPages<Page extends ListPage, Row>(list: List<Page, Row>, limit: number): Promise<number> {
  const format = createTable(list.columns);
  return await eachPage(list.fetch, limit, async (page) => {
    const rows = list.rows(page);
    return { printed: rows.length, isOpen: rows.length === 0 || (await printOut(format(rows))) };
  });
}

/** Prints pages up to the limit, or until the reader closes the output. Returns the number of rows. */
async function eachPage<Page extends { nextPageToken: string }>(
  fetch: (page: PageRequest) => Promise<Page>,
  limit: number,
  print: (page: Page) => Promise<{ printed: number; isOpen: boolean }>,
): Promise<number> {
  let printed = 0;
  let pageToken = "";
  do {
    const page = await fetch({ pageSize: Math.min(limit - printed, MAX_PAGE_SIZE), pageToken });
    const { printed: count, isOpen } = await print(page);
    printed += count;
    if (!isOpen) break;
    pageToken = page.nextPageToken;
  } while (printed < limit && pageToken !== "");
  return printed;
}

function smaller(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
