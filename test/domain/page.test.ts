import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DomainError } from "../../src/domain/errors.ts";
import { cutPage, readPage } from "../../src/domain/page.ts";
import { runs } from "../support/runs.ts";

const positions = fc.stringMatching(/^[0-9a-z_]{1,60}$/);

/** The token of a page with one row at the position. */
function tokenOf(position: string): string {
  return cutPage([position, "another"], { list: "keys", size: 1, after: "" }, (row) => row).nextPageToken;
}

test("a token continues where its page ended", () => {
  fc.assert(
    fc.property(positions, (position) => {
      expect(tokenOf(position)).toMatch(/^[\w-]+$/);
      expect(readPage("keys", { pageSize: 10, pageToken: tokenOf(position) })).toEqual({
        list: "keys",
        size: 10,
        after: position,
      });
    }),
  );
});

test("a token has exactly one encoding, and any other text is rejected", () => {
  const mangled = fc.tuple(positions, fc.string({ maxLength: 3 })).map(([at, rest]) => tokenOf(at) + rest);
  fc.assert(
    fc.property(fc.oneof(fc.string({ minLength: 1 }), fc.base64String({ minLength: 4 }), mangled), (pageToken) => {
      let after: string | undefined;
      try {
        after = readPage("keys", { pageSize: 1, pageToken }).after;
      } catch (error) {
        expect(error).toBeInstanceOf(DomainError);
        expect((error as DomainError).fields).toMatchObject([{ field: "page_token" }]);
      }
      if (after !== undefined) expect(tokenOf(after)).toBe(pageToken);
    }),
    { numRuns: runs(500) },
  );
});

test.each([
  [0, 50],
  [1, 1],
  [1_000, 1_000],
  [1_001, 1_000],
])("a size of %i becomes %i", (pageSize, size) => {
  expect(readPage("keys", { pageSize, pageToken: "" })).toEqual({ list: "keys", size, after: "" });
});

describe("pagination with tokens", () => {
  test("returns every row once, in order, for any page size", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 12 }), (count, pageSize) => {
        const all = Array.from({ length: count }, (_, i) => String(i).padStart(3, "0"));
        const seen: string[] = [];
        let pageToken = "";
        let pages = 0;
        do {
          const page = readPage("keys", { pageSize, pageToken });
          const fetched = all.filter((row) => row > page.after).slice(0, page.size + 1);
          const { rows, nextPageToken } = cutPage(fetched, page, (row) => row);
          seen.push(...rows);
          pageToken = nextPageToken;
          pages++;
        } while (pageToken !== "");
        expect(seen).toEqual(all);
        expect(pages).toBe(Math.max(1, Math.ceil(count / pageSize)));
      }),
    );
  });
});

test("a token of a list with filters is rejected with other filters", () => {
  const read = (pageToken: string, ...filters: (string | string[])[]) => readPage("usage", { pageSize: 1, pageToken }, filters);
  const { list } = read("", "acct_1", ["day", "key"]);
  const { nextPageToken } = cutPage(["1", "2"], { list, size: 1, after: "" }, (row) => row);
  expect(read(nextPageToken, "acct_1", ["day", "key"]).after).toBe("1");
  for (const filters of [["acct_1", ["day,key"]], ["acct_1", "day", "key"], ["acct_2", ["day", "key"]], []]) {
    expect(() => read(nextPageToken, ...filters)).toThrow("page_token");
  }
});

test("a token of one list is rejected by another", () => {
  expect(() => readPage("entries", { pageSize: 1, pageToken: tokenOf("5") })).toThrow("page_token");
});
