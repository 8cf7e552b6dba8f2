import { beforeAll, describe, expect, test } from "vitest";
import { searchAccounts } from "../../src/accounts/store.ts";
import type { NAME_PIECES } from "../../src/database/cells/merge-cells.ts";
import type { Cells } from "../../src/database/driver/cells.ts";
import { keyQueryOf } from "../../src/domain/key-query.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { type Page, readPage } from "../../src/domain/page.ts";
import { searchKeys } from "../../src/keys/store.ts";
import { allPages } from "../support/all-pages.ts";
import { useOwnStore, withCall } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const store = useOwnStore();

beforeAll(async () => {
  for (const name of ["a", "b", "c Nord", "d", "Nord z", "e", "f", "g", "h nOrD", "i nord", "j"]) {
    const id = typeIds.account();
    const keyId = typeIds.key(laneOfId(id));
    await store.owner`
      INSERT INTO vx.accounts (lane, id, name, plan, created_at) VALUES (vx.lane_of(${id}), ${id}, ${name}, 'free', now())`;
    await store.owner`
      INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, visible_start, visible_end, created_at)
      VALUES (vx.lane_of(${id}), sha256(${keyId}::bytea), ${keyId}, ${id}, ${name}, 'free', 1,
        CASE ${name}::text WHEN 'h nOrD' THEN 'nord' ELSE 'abcd' END, 'wxyz', now())`;
  }
});

type Pieces = typeof NAME_PIECES;

const searches = [
  {
    what: "accounts",
    statement: "search_names",
    search: (cells: Cells, text: string, page: Page, pieces?: Pieces) => searchAccounts(cells, text, page, pieces),
  },
  {
    what: "keys",
    statement: "search_key_names",
    search: (cells: Cells, text: string, page: Page, pieces?: Pieces) => {
      const query = keyQueryOf(text);
      if (!query) throw new Error("not a query");
      return searchKeys(cells, query, page, pieces);
    },
  },
];

describe.each(searches)("a search for $what", ({ search, statement }) => {
  /** The names on all pages, and the numbers of names that the statements were allowed to read. */
  async function find(text: string, pageSize: number, pieces?: Pieces) {
    const read: unknown[] = [];
    const cells = withCall(store.database, (name, ...parameters) => {
      if (name === statement) read.push(parameters[3]);
      return store.database.call(name, ...parameters);
    });
    const pages = await allPages<{ name: string }>(
      async (pageToken) => await search(cells, text, readPage("keys", { pageSize, pageToken }, [text]), pieces),
    );
    expect(Math.max(...pages.map(({ length }) => length))).toBeLessThanOrEqual(pageSize);
    const names = pages.flat().map(({ name }) => name);
    return { names, read };
  }

  test("finds each name once that starts with the text or contains it, in pieces and pages of every size", async () => {
    for (const pageSize of [1, 2, 3, 100]) {
      for (const rows of [1, 2, 3, 4, 100]) {
        const { names } = await find("NORD ", pageSize, { rows, max: 100 });
        expect(names).toEqual(["Nord z"]);
        const parts = await find(" nord", pageSize, { rows, max: 100 });
        expect(parts.names).toEqual(["c Nord", "h nOrD", "i nord"]);
        const both = await find("nor", pageSize, { rows, max: 100 });
        expect(both.names).toEqual(["Nord z", "c Nord", "h nOrD", "i nord"]);
      }
    }
  });

  test("reads a bounded number of names in each statement, and of statements", async () => {
    expect(await find(" nord", 10, { rows: 3, max: 2 })).toEqual({ names: ["c Nord"], read: [3, 3] });
    const { names, read } = await find("none", 10);
    expect(names).toEqual([]);
    expect(read).toEqual([10_000]);
  });
});

test("a key that its visible characters match is not found again by its name", async () => {
  const query = keyQueryOf("nord");
  if (!query) throw new Error("not a query");
  const pages = await allPages((pageToken) =>
    searchKeys(store.database, query, readPage("keys", { pageSize: 1, pageToken }, [])),
  );
  const names = pages.flat().map(({ name }) => name);
  expect(names).toEqual(["h nOrD", "Nord z", "c Nord", "i nord"]);
});
