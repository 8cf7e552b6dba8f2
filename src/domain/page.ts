import { hash } from "node:crypto";
import { DomainError } from "./errors.ts";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1000;
/** Valid positions. Model ids have more characters than other ids; positions of filtered lists contain callers' texts. */
const POSITIONS = { ours: /^[0-9a-z_]+$/, models: /^[0-9A-Za-z._:/-]+$/, filtered: /^\d/ };

type ListName =
  | "recent_entries"
  | "accounts"
  | "keys"
  | "entries"
  | "models"
  | "prices"
  | "account_prices"
  | "operators"
  | "operator_events"
  | "activity"
  | "events"
  | "topups"
  | "deliveries"
  | "failures"
  | "usage";

export type Page = {
  /** The list a token belongs to, with its filters: a token of one list is invalid for another. */
  readonly list: string;
  readonly size: number;
  /** The last position of the previous page; empty for the first page. */
  readonly after: string;
};

/**
 * A larger page size is reduced to the maximum; a token that was never issued is an error. Negative sizes are
 * rejected earlier. A token of a list with filters is invalid with other filters.
 */
export function readPage(
  name: ListName,
  request: { pageSize: number; pageToken: string },
  filters?: readonly (string | readonly string[])[],
): Page {
  const digest = filters && hash("sha256", JSON.stringify(filters), "hex").slice(0, 16);
  const list = digest === undefined ? name : `${name}.${digest}`;
  const size = pageSizeOf(request);
  if (request.pageToken === "") return { list, size, after: "" };
  const text = Buffer.from(request.pageToken, "base64url").toString("utf8");
  const after = text.slice(list.length + 1);
  const isPosition = POSITIONS[filters !== undefined ? "filtered" : name === "models" ? name : "ours"];
  if (!isPosition.test(after) || encodeToken(list, after) !== request.pageToken) throw badToken();
  return { list, size, after };
}

/** A size above the maximum is reduced to it. */
export function pageSizeOf({ pageSize }: { readonly pageSize: number }): number {
  return pageSize === 0 ? DEFAULT_PAGE_SIZE : Math.min(pageSize, MAX_PAGE_SIZE);
}

/** Splits the result of a query for one row more than the page size. */
export function cutPage<Row>(rows: Row[], page: Page, position: (row: Row) => string): { rows: Row[]; nextPageToken: string } {
  const last = rows[page.size - 1];
  if (rows.length <= page.size || last === undefined) return { rows, nextPageToken: "" };
  return { rows: rows.slice(0, page.size), nextPageToken: encodeToken(page.list, position(last)) };
}

/** The same for a query that stopped at a position before it filled the page; undefined if it reached the end. */
export function pageUpTo<Row>(
  rows: Row[],
  page: Page,
  position: (row: Row) => string,
  stoppedAt: string | undefined,
): { rows: Row[]; nextPageToken: string } {
  if (rows.length > page.size || stoppedAt === undefined) return cutPage(rows, page, position);
  return { rows, nextPageToken: encodeToken(page.list, stoppedAt) };
}

export function badToken(): DomainError {
  return DomainError.ofField("page_token", "is not a token of this list");
}

export function encodeToken(list: string, position: string): string {
  return Buffer.from(`${list}:${position}`, "utf8").toString("base64url");
}

/** PostgreSQL accepts no text with this character. */
const SEPARATOR = "\0";

/** A position that consists of several texts, the first of which is a number. */
export function joinPosition(parts: readonly (string | number)[]): string {
  return parts.join(SEPARATOR);
}

/** The number and the texts of a position; undefined for the first page. */
export function splitPosition({ after }: Page, texts: number): readonly [number, ...string[]] | undefined {
  if (after === "") return undefined;
  const [first = "", ...others] = after.split(SEPARATOR);
  if (!/^\d{1,9}$/.test(first) || others.length !== texts) throw badToken();
  return [Number(first), ...others];
}
