import { useState } from "preact/hooks";
import { type Query, useQuery } from "./use-query.ts";

export type Page<Row> = { readonly rows: readonly Row[]; readonly nextPageToken: string };

/** A list that is shown page by page. */
export type Pages<Row> = Query<Page<Row>> & {
  /** From 1. */
  readonly number: number;
  readonly next: (() => void) | undefined;
  readonly previous: (() => void) | undefined;
};

/** Loads one page at a time. `filter` identifies the list: with another filter, the first page is shown. */
export function usePages<Row>(load: (pageToken: string, signal: AbortSignal) => Promise<Page<Row>>, filter: string): Pages<Row> {
  const [visited, setVisited] = useState<{ filter: string; tokens: readonly string[] }>({
    filter,
    tokens: [],
  });
  const tokens = visited.filter === filter ? visited.tokens : [];
  const query = useQuery((signal) => load(tokens.at(-1) ?? "", signal), [filter, tokens.at(-1)]);
  const token = query.isLoading ? "" : (query.data?.nextPageToken ?? "");
  return {
    ...query,
    number: tokens.length + 1,
    next: token === "" ? undefined : () => setVisited({ filter, tokens: [...tokens, token] }),
    previous: tokens.length === 0 ? undefined : () => setVisited({ filter, tokens: tokens.slice(0, -1) }),
  };
}
