import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
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

type Paged<Page, Row> = {
  readonly fetch: (page: PageRequest) => Promise<Page>;
  readonly rows: (page: Page) => readonly Row[];
};
type List<Desc extends DescMessage, Row> = Paged<MessageShape<Desc>, Row> & {
  readonly desc: Desc;
  readonly columns: readonly Column<Row>[];
  /** Printed when the list is empty. */
  readonly none: string;
};

const MAX_PAGE_SIZE = 1000;
/** A sorted list is in memory. */
const MAX_SORTED_ROWS = 100_000;

/** With --json, prints one page; otherwise prints all pages as a table. */
export async function printList<Desc extends DescMessage, Row>(
  { json, limit, pageSize, pageToken = "" }: ListOptions & JsonOption,
  list: List<Desc, Row>,
): Promise<void> {
  if (json) {
    // With 0 the server chooses the size.
    const size = Math.min(pageSize ?? limit ?? 0, limit ?? pageSize ?? 0);
    await printOut(jsonLine(list.desc, await list.fetch({ pageSize: size, pageToken })));
    return;
  }
  if (pageSize !== undefined || pageToken !== "") {
    throw usageFailure("--page-size and --page-token require --json; a table contains all pages, or --limit rows");
  }
  if (!(await printPages(list, createTable(list.columns), limit))) await printError(list.none);
}

/** Prints all pages as CSV. */
export async function printCsv<Page, Desc extends DescMessage>(
  { json, limit, pageSize, pageToken }: ListOptions & JsonOption,
  list: Paged<Page, MessageShape<Desc>>,
  desc: Desc,
): Promise<void> {
  if (json || pageSize !== undefined || pageToken !== undefined) {
    throw usageFailure("--csv contains all pages, or --limit rows; it excludes --json and its options");
  }
  const { header, line } = csvWriterOf(desc);
  await printOut(header);
  await printPages(list, (rows) => rows.map(line).join(""), limit);
}

/**
 * The first rows in an order that the server does not have. All pages are read, so that `limit` selects among the rows of all
 * pages and cells; only about twice as many rows are kept.
 */
export async function firstRows<Page, Row>(
  { limit = MAX_SORTED_ROWS + 1 }: ListOptions,
  list: Paged<Page, Row>,
  compare: (one: Row, other: Row) => number,
): Promise<Row[]> {
  let kept: Row[] = [];
  for await (const rows of eachPage(list)) {
    kept.push(...rows);
    if (kept.length > 2 * Math.min(limit, MAX_SORTED_ROWS)) kept = kept.sort(compare).slice(0, limit);
  }
  if (limit > MAX_SORTED_ROWS && kept.length > MAX_SORTED_ROWS) {
    throw usageFailure(`there are more than ${MAX_SORTED_ROWS} rows to sort; add --limit N or --sort start`);
  }
  return kept.sort(compare).slice(0, limit);
}

/** Prints page by page, so that memory does not grow with the list, until the reader closes the output. Returns whether there are rows. */
async function printPages<Page, Row>(
  list: Paged<Page, Row>,
  format: (rows: readonly Row[]) => string,
  limit?: number,
): Promise<boolean> {
  let hasRows = false;
  for await (const rows of eachPage(list, limit)) {
    hasRows ||= rows.length > 0;
    if (rows.length > 0 && !(await printOut(format(rows)))) break;
  }
  return hasRows;
}

/** The rows of each page, up to the limit. */
export async function* eachPage<Page, Row>(
  { fetch, rows }: Paged<Page, Row>,
  limit: number = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly Row[]> {
  let count = 0;
  let pageToken = "";
  do {
    const page = await fetch({ pageSize: Math.min(limit - count, MAX_PAGE_SIZE), pageToken });
    const found = rows(page);
    yield found;
    count += found.length;
    pageToken = (page as { readonly nextPageToken?: string }).nextPageToken ?? "";
  } while (count < limit && pageToken !== "");
}
