import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { readPage } from "../../src/domain/page.ts";
import { namesOf } from "../../src/store/accounts.ts";
import { readAllUsage, TooMuchUsage, type UsageQuery, type UsageSum } from "../../src/store/usage-sums.ts";
import { createPayer, type Payer } from "../support/payer.ts";
import { useOwnStore, withCall } from "../support/store.ts";

const store = useOwnStore();
const NO_GROUPS = { account: false, key: false, model: false, user: false, upstream: false };
const page = (pageSize: number, pageToken = "") => readPage("usage", { pageSize, pageToken }, []);

let payers: Payer[];
let ids: string[];
beforeAll(async () => {
  payers = [];
  for (let i = 0; i < 4; i++) payers.push(await createPayer(store.database, 0n));
  ids = payers.map(({ accountId }) => accountId).sort();
});

type TestSum = { account: number; quarter: number; key: string; model: string; requests: number };

const anySum: fc.Arbitrary<TestSum> = fc.record({
  account: fc.integer({ min: 0, max: 3 }),
  quarter: fc.integer({ min: 100, max: 130 }),
  key: fc.constantFrom("key_a", "key_b"),
  model: fc.constantFrom("m", "n"),
  requests: fc.integer({ min: 1, max: 5 }),
});

async function replaceSums(sums: readonly TestSum[]) {
  await store.owner`TRUNCATE vx.usage_quarters`;
  const accounts = sums.map(({ account }) => ids[account] ?? "");
  await store.owner`
    INSERT INTO vx.usage_quarters
    SELECT r.lane, r.account, r.quarter, r.key, r.model, '', 1, r.requests, 1, 0, 0, 2, 0, 0, 0, 3
    FROM unnest(${accounts.map(laneOfId)}::smallint[], ${accounts}::text[], ${sums.map((row) => row.quarter)}::int[],
      ${sums.map((row) => row.key)}::text[], ${sums.map((row) => row.model)}::text[],
      ${sums.map((row) => row.requests)}::int[]) AS r (lane, account, quarter, key, model, requests)`;
}

function expectedGroups(sums: readonly TestSum[], { starts, end, by }: UsageQuery): string[] {
  const groups = new Map<string, number>();
  for (const { account, quarter, key, model, requests } of sums) {
    const start = starts.findLast((one) => one <= quarter);
    if (start === undefined || quarter >= end) continue;
    const id = [start, by.account ? ids[account] : "", by.key ? key : "", by.model ? model : ""].join(" ");
    groups.set(id, (groups.get(id) ?? 0) + requests);
  }
  return [...groups].map((entry) => entry.join(" ")).sort();
}

function groupOf({ start, account_id, key_id, model, requests }: UsageSum): string {
  return [start, account_id, key_id, model, requests].join(" ");
}

test("pages of any size, read in pieces of any size, are the sums of all accounts in order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(anySum, { maxLength: 50, selector: ({ requests, ...id }) => JSON.stringify(id) }),
      fc.record({ account: fc.boolean(), key: fc.boolean(), model: fc.boolean() }),
      fc.constantFrom([100], [101, 110, 111, 125], [100, 104, 108, 112, 116, 120, 124]),
      fc.integer({ min: 1, max: 6 }),
      fc.record({ rows: fc.bigInt({ min: 1n, max: 20n }), accounts: fc.integer({ min: 1, max: 5 }) }),
      async (sums, by, starts, pageSize, pieces) => {
        await replaceSums(sums);
        const query = { starts, end: 129, by: { ...NO_GROUPS, ...by } };
        const read: UsageSum[] = [];
        let token = "";
        do {
          const next = await readAllUsage(store.database, query, page(pageSize, token), { ...pieces, max: 1_000 });
          expect(next.rows.length).toBeLessThanOrEqual(pageSize);
          read.push(...next.rows);
          token = next.nextPageToken;
        } while (token !== "");
        expect(read.map(groupOf)).toEqual(expectedGroups(sums, query));
      },
    ),
    { numRuns: 40 },
  );
});

test("a page by account reads only accounts of the page, and a page that needs too many statements is refused", async () => {
  await replaceSums(ids.map((_, account) => ({ account, quarter: 100, key: "key_a", model: "m", requests: account + 1 })));
  let statements = 0;
  const database = withCall(store.database, (...call) => {
    statements++;
    return store.database.call(...call);
  });
  const query = { starts: [100], end: 101, by: { ...NO_GROUPS, account: true } };
  const pieces = { rows: 1n, accounts: 1, max: 2 };
  const first = await readAllUsage(database, query, page(1), pieces);
  const second = await readAllUsage(database, query, page(1, first.nextPageToken), { ...pieces, max: 3 });
  expect(second.rows.map(({ account_id }) => account_id)).toEqual([ids[1]]);
  // Two for each page, and the account that ended the first page once more.
  expect(statements).toBe(5);
  await expect(readAllUsage(database, query, page(3), pieces)).rejects.toThrow(TooMuchUsage);
});

test("accounts and keys have names, unknown ids have none", async () => {
  const [payer] = payers;
  const names = await namesOf(store.database, [ids[0] ?? "", "acct_unknown"], [payer?.keyId ?? "", ""]);
  expect([...names.keys()].sort()).toEqual([ids[0], payer?.keyId].sort());
});
