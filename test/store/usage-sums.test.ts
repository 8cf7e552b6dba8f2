import fc from "fast-check";
import { expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { readPage } from "../../src/domain/page.ts";
import type { Database } from "../../src/store/driver/database.ts";
import {
  currentQuarter,
  type Grouping,
  readUsage,
  TooMuchUsage,
  type UsageQuery,
  type UsageSum,
} from "../../src/store/usage-sums.ts";
import { charge, createPayer, endOf, holdOf, newGenerationId, type Payer, placeHold } from "../support/payer.ts";
import { createTestBilling, useOwnStore, withCall } from "../support/store.ts";

const store = useOwnStore();
const NO_GROUPS: Grouping = { account: false, key: false, model: false, user: false, upstream: false };
const page = (pageSize = 1_000, pageToken = "") => readPage("usage", { pageSize, pageToken }, []);

async function today(by: Partial<Grouping> = {}): Promise<UsageQuery> {
  const now = await currentQuarter(store.database);
  return { starts: [now - 96], end: now + 2, by: { ...NO_GROUPS, ...by } };
}

/** Sums of these quarters, directly in the table. */
async function insertSums({ accountId }: Payer, rows: TestSum[]) {
  await store.owner`
    INSERT INTO vx.usage_quarters
    SELECT ${laneOfId(accountId)}::smallint, ${accountId}, r.quarter, r.key, r.model, r.user_id, 1, r.requests, 1, 0, 0, 2, 0, 0, 0, 3
    FROM unnest(${rows.map((row) => row.quarter)}::int[], ${rows.map((row) => row.key)}::text[], ${rows.map((row) => row.model)}::text[],
      ${rows.map((row) => row.user)}::text[], ${rows.map((row) => row.requests)}::int[]) AS r (quarter, key, model, user_id, requests)`;
}

test("a settlement adds its charge to the sums of its key, model and user", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 1_000n);
  await charge(billing, payer, 10n);
  await charge(billing, payer, 20n, "ada");
  await charge(billing, payer, 30n, "ada");
  const groups = await today({ key: true, model: true, user: true });
  const { rows, throughSeq } = await readUsage(store.database, payer.accountId, groups, page());
  expect(rows).toMatchObject([
    { key_id: payer.keyId, model: "m", user_name: "", requests: 1n, input: 10n, cost_micros: 10n },
    { key_id: payer.keyId, model: "m", user_name: "ada", requests: 2n, input: 50n, cost_micros: 50n },
  ]);
  expect(throughSeq).toBe(4n);
});

test("a page that is read in pieces includes all entries up to its number", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const billing = createTestBilling(store.database);
  for (const user of ["b", "c"]) await charge(billing, payer, 1n, user);
  // A charge before and a charge after the position are added between two pieces.
  const database = withCall(store.database, async <Row>(...call: Parameters<Database["call"]>) => {
    const rows = await store.database.call<Row>(...call);
    for (const user of ["a", "d"]) await charge(billing, payer, 1n, user);
    return rows;
  });
  const { rows, throughSeq } = await readUsage(database, payer.accountId, await today({ user: true }), page(), {
    rows: 1n,
    max: 5,
  });
  const requests = rows.reduce((sum, row) => sum + row.requests, 0n);
  // The first entry is a credit.
  expect(throughSeq).toBe(3n);
  expect(requests).toBeGreaterThanOrEqual(throughSeq - 1n);
});

test("credits and released holds are not counted as usage", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const billing = createTestBilling(store.database);
  const id = await placeHold(billing, payer, 5n);
  await billing.end(endOf(payer, id, undefined));
  expect((await readUsage(store.database, payer.accountId, await today(), page())).rows).toEqual([]);
});

test("after 1,000 users of a day, further ones count for (other); users that have a name keep it", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const billing = createTestBilling(store.database);
  await charge(billing, payer, 1n, "ada");
  await store.owner`UPDATE vx.usage_user_counts SET users = 999 WHERE account_id = ${payer.accountId}`;
  for (const user of ["last", "late", "later", "ada", ""]) await charge(billing, payer, 1n, user);
  const { rows } = await readUsage(store.database, payer.accountId, await today({ user: true }), page());
  const sums = rows.map(({ user_name, requests }) => [user_name, requests]);
  expect(sums).toEqual([
    ["", 1n],
    ["(other)", 2n],
    ["ada", 2n],
    ["last", 1n],
  ]);
});

test("a user of a batch is named, even if the last call of the batch has none", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 1_000n);
  // The second and the third are one batch, in the order of their ids.
  const ids = ["", "ada", ""].map((user) => ({ user, id: newGenerationId(payer) }));
  for (const { id } of ids) await billing.hold(holdOf(payer, 1n, id));
  await Promise.all(
    ids.map(({ user, id }) => {
      const end = endOf(payer, id, 1n);
      return billing.end({ ...end, charge: end.charge && { ...end.charge, user } });
    }),
  );
  const { rows } = await readUsage(store.database, payer.accountId, await today({ user: true }), page());
  expect(rows.map(({ user_name, requests }) => [user_name, requests])).toEqual([
    ["", 2n],
    ["ada", 1n],
  ]);
});

test("each day has its own count of users", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 1_000n);
  await charge(billing, payer, 1n, "ada");
  await store.owner`UPDATE vx.usage_user_counts SET day = day - 1, users = 1000 WHERE account_id = ${payer.accountId}`;
  await store.owner`UPDATE vx.usage_users SET day = day - 1 WHERE account_id = ${payer.accountId}`;
  await charge(billing, payer, 1n, "bob");
  const [row] = await store.owner`SELECT users FROM vx.usage_user_counts WHERE account_id = ${payer.accountId}`;
  const users = await store.owner`
    SELECT n.name FROM vx.usage_users JOIN vx.end_users n USING (lane, account_id, user_id) WHERE account_id = ${payer.accountId}`;
  expect([row?.users, users.map(({ name }) => name)]).toEqual([1, ["bob"]]);
});

type TestSum = { quarter: number; key: string; model: string; user: string; requests: number };

const anySum: fc.Arbitrary<TestSum> = fc.record({
  quarter: fc.integer({ min: 100, max: 140 }),
  key: fc.constantFrom("key_a", "key_b"),
  model: fc.constantFrom("m", "n"),
  user: fc.constantFrom("", "(other)", "ä", "z", "𝒂", "\ufffd"),
  requests: fc.integer({ min: 1, max: 5 }),
});

test("pages of any size, read in pieces of any size, are the sums of the range in order", async () => {
  const payer = await createPayer(store.database, 0n);
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(anySum, { maxLength: 60, selector: ({ requests, ...id }) => JSON.stringify(id) }),
      fc.record({ key: fc.boolean(), model: fc.boolean(), user: fc.boolean() }),
      fc.constantFrom([100], [101, 110, 111, 135], [90, 104, 108, 112, 116, 120, 124, 128, 132, 136]),
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 70 }),
      async (sums, by, starts, pageSize, pieceRows) => {
        await store.owner`DELETE FROM vx.usage_quarters WHERE account_id = ${payer.accountId}`;
        await insertSums(payer, sums);
        const query = { starts, end: 139, by: { ...NO_GROUPS, ...by } };
        const read: UsageSum[] = [];
        let token = "";
        do {
          const next = await readUsage(store.database, payer.accountId, query, page(pageSize, token), {
            rows: BigInt(pieceRows),
            max: 100,
          });
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

function groupOf({ start, key_id, model, user_name, requests }: UsageSum): unknown[] {
  return [start, key_id, model, user_name, Number(requests)];
}

function expectedGroups(sums: TestSum[], { starts, end, by }: UsageQuery): unknown[][] {
  const groups = new Map<string, number>();
  for (const { quarter, key, model, user, requests } of sums) {
    const start = starts.findLast((one) => one <= quarter);
    if (start === undefined || quarter >= end) continue;
    const id = [start, by.key ? key : "", by.model ? model : "", by.user ? user : ""];
    // Hexadecimal UTF-8 sorts as the database does.
    const sortable = id
      .map((part) => (typeof part === "number" ? String(part).padStart(4) : Buffer.from(part).toString("hex")))
      .join("|");
    groups.set(sortable, (groups.get(sortable) ?? 0) + requests);
  }
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([sortable, requests]) => {
      const [start, ...ids] = sortable.split("|");
      return [Number(start), ...ids.map((hex) => Buffer.from(hex, "hex").toString()), requests];
    });
}

test("a page that needs too many statements is refused", async () => {
  const payer = await createPayer(store.database, 0n);
  const sums = Array.from({ length: 30 }, (_, quarter) => ({ quarter, key: "k", model: "m", user: "", requests: 1 }));
  await insertSums(payer, sums);
  const query = { starts: [0], end: 50, by: NO_GROUPS };
  await expect(readUsage(store.database, payer.accountId, query, page(), { rows: 10n, max: 3 })).rejects.toThrow(TooMuchUsage);
  const { rows } = await readUsage(store.database, payer.accountId, query, page(), { rows: 10n, max: 4 });
  expect(rows.map(({ requests }) => requests)).toEqual([30n]);
});
