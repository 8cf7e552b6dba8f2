import { DomainError } from "./errors.ts";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1000;
/** What a position can look like; ids of models have more characters than ours. */
const POSITIONS = { ours: /^[0-9a-z_]+$/, models: /^[0-9A-Za-z._:/-]+$/ };

/** Which list: a token of one is none of another. */
type ListName = "accounts" | "keys" | "entries" | "models";

export type Page = {
  readonly list: ListName;
  readonly size: number;
  /** Where the page before ended; empty for the first page. */
  readonly after: string;
};

/** Larger sizes are coerced; a token nobody was given is an error. Negative sizes never get here. */
export function readPage(list: ListName, request: { pageSize: number; pageToken: string }): Page {
  const size = request.pageSize === 0 ? DEFAULT_PAGE_SIZE : Math.min(request.pageSize, MAX_PAGE_SIZE);
  if (request.pageToken === "") return { list, size, after: "" };
  const text = Buffer.from(request.pageToken, "base64url").toString("utf8");
  const after = text.slice(list.length + 1);
  const isPosition = list === "models" ? POSITIONS.models : POSITIONS.ours;
  if (!isPosition.test(after) || encodeToken(list, after) !== request.pageToken) throw badToken();
  return { list, size, after };
}

/** Splits what a query for one row more than the page returned. */
export function cutPage<Row>(
  rows: Row[],
  page: Page,
  position: (row: Row) => string,
): { rows: Row[]; nextPageToken: string } {
  const last = rows[page.size - 1];
  if (rows.length <= page.size || last === undefined) return { rows, nextPageToken: "" };
  return { rows: rows.slice(0, page.size), nextPageToken: encodeToken(page.list, position(last)) };
}

export function badToken(): DomainError {
  return DomainError.ofField("page_token", "is not a token of this list");
}

function encodeToken(list: ListName, position: string): string {
  return Buffer.from(`${list}:${position}`, "utf8").toString("base64url");
}
