import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { namesOf } from "../../src/accounts/store.ts";
import type { Database } from "../../src/database/driver/database.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { readPage } from "../../src/domain/page.ts";
import {
  currentQuarter,
  type Grouping,
  readAllUsage,
  readUsage,
  TooMuchUsage,
  type UsageQuery,
  type UsageSum,
} from "../../src/usage/sums.ts";
import { allPages } from "../support/all-pages.ts";
import { charge, createPayer, endOf, holdOf, newGenerationId, type Payer, placeHold } from "../support/payer.ts";
import { createTestBilling, useOwnStore, withCall } from "../support/store.ts";

const store = useOwnStore();
const NO_GROUPS: Grouping = { account: false, key: false, model: false, user: false, upstream: false };
const page = (pageSize = 1_000, pageToken = "") => readPage("usage", { pageSize, pageToken }, []);

async function today(by: Partial<Grouping> = {}): Promise<UsageQuery> {
  const now = await currentQuarter(store.database);
  return { starts: [now - 96], end: now + 2, by: { ...NO_GROUPS, ...by } };
}

type TestSum = { account: number; quarter: number; key: string; model: string; user: string; requests: number };
let payers: Payer[];
/** Of the accounts, in order. */
let ids: string[];

beforeAll(async () => {
  payers = await Promise.all([0, 1, 2, 3].map(() => createPayer(store.database, 0n)));
  ids = payers.map(({ accountId }) => accountId).sort();
});

/** Replaces the sums of these accounts, directly in the table. */
async function replaceSums(rows: readonly TestSum[]) {
  await store.owner`DELETE FROM vx.usage_quarters WHERE account_id IN ${store.owner(ids)}`;
  const accounts = rows.map(({ account }) => ids[account] ?? "");
  await store.owner`
    INSERT INTO vx.usage_quarters
    SELECT r.lane, r.account, r.quarter, r.key, r.model, r.user_id, 1, r.requests, 1, 0, 0, 2, 0, 0, 0, 3
    FROM unnest(${accounts.map(laneOfId)}::smallint[], ${accounts}::text[], ${rows.map((row) => row.quarter)}::int[],
      ${rows.map((row) => row.key)}::text[], ${rows.map((row) => row.model)}::text[], ${rows.map((row) => row.user)}::text[],
      ${rows.map((row) => row.requests)}::int[]) AS r (lane, account, quarter, key, model, user_id, requests)`;
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
  // These are one batch, in this order.
  await Promise.all(["last", "late", "later"].map((user) => charge(billing, payer, 1n, user)));
  for (const user of ["ada", ""]) await charge(billing, payer, 1n, user);
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

const anySum = fc.record<TestSum>({
  account: fc.integer({ min: 0, max: 3 }),
  quarter: fc.integer({ min: 100, max: 140 }),
  key: fc.constantFrom("key_a", "key_b"),
  model: fc.constantFrom("m", "n"),
  user: fc.constantFrom("", "(other)", "ä", "z", "𝒂", "\ufffd"),
  requests: fc.integer({ min: 1, max: 5 }),
});
const anySums = fc.uniqueArray(anySum, { maxLength: 60, selector: ({ requests, ...id }) => JSON.stringify(id) });
const anyStarts = fc.constantFrom([100], [101, 110, 111, 135], [90, 104, 108, 112, 116, 120, 124, 128, 132, 136]);
const by = fc.record({ account: fc.boolean(), key: fc.boolean(), model: fc.boolean(), user: fc.boolean() });

test("pages of any size, read in pieces of any size, are the sums of the range in order", async () => {
  const sizes = fc.record({ page: fc.integer({ min: 1, max: 7 }), rows: fc.bigInt({ min: 1n, max: 70n }) });
  const property = fc.asyncProperty(anySums, by, anyStarts, sizes, async (sums, groups, starts, size) => {
    await replaceSums(sums);
    const query = { starts, end: 139, by: { ...NO_GROUPS, ...groups, account: false } };
    const pages = await allPages((token) =>
      readUsage(store.database, ids[0] ?? "", query, page(size.page, token), { rows: size.rows, max: 100 }),
    );
    expect(Math.max(...pages.map(({ length }) => length))).toBeLessThanOrEqual(size.page);
    expect(pages.flat().map(groupOf)).toEqual(
      expectedGroups(
        sums.filter(({ account }) => account === 0),
        query,
      ),
    );
  });
  await fc.assert(property, { numRuns: 40 });
});

test("pages of any size, read in pieces of any size, are the sums of all accounts in order", async () => {
  const rows = fc.bigInt({ min: 1n, max: 20n });
  const sizes = fc.record({ page: fc.integer({ min: 1, max: 6 }), rows, accounts: fc.integer({ min: 1, max: 5 }) });
  const property = fc.asyncProperty(anySums, by, anyStarts, sizes, async (sums, groups, starts, size) => {
    await replaceSums(sums);
    const query = { starts, end: 139, by: { ...NO_GROUPS, ...groups, user: false } };
    const pages = await allPages((token) =>
      readAllUsage(store.database, query, page(size.page, token), { rows: size.rows, accounts: size.accounts, max: 1_000 }),
    );
    expect(Math.max(...pages.map(({ length }) => length))).toBeLessThanOrEqual(size.page);
    expect(pages.flat().map(groupOf)).toEqual(expectedGroups(sums, query));
  });
  await fc.assert(property, { numRuns: 40 });
});

test("a page that is full within an account that is read in pieces has all of the account's usage", async () => {
  const sum = { account: 0, quarter: 100, user: "", requests: 1 };
  await replaceSums([
    { ...sum, key: "key_a", model: "m" },
    { ...sum, key: "key_a", model: "n" },
    { ...sum, key: "key_b", model: "m" },
  ]);
  const query = { starts: [100], end: 139, by: { ...NO_GROUPS, account: true, model: true } };
  const pieces = { rows: 1n, accounts: 1, max: 1_000 };
  const { rows } = await readAllUsage(store.database, query, page(1), pieces);
  expect(rows.map(groupOf)).toEqual([[100, ids[0], "", "m", "", 2]]);
});

function groupOf({ start, account_id, key_id, model, user_name, requests }: UsageSum): unknown[] {
  return [start, account_id, key_id, model, user_name, Number(requests)];
}

function expectedGroups(sums: readonly TestSum[], { starts, end, by }: UsageQuery): unknown[][] {
  const groups = new Map<string, unknown[]>();
  for (const { account, quarter, key, model, user, requests } of sums) {
    const start = starts.findLast((one) => one <= quarter);
    if (start === undefined || quarter >= end) continue;
    const names = [by.account ? (ids[account] ?? "") : "", by.key ? key : "", by.model ? model : "", by.user ? user : ""];
    // Hexadecimal UTF-8 sorts as the database does.
    const sortable = [String(start).padStart(4), ...names.map((name) => Buffer.from(name).toString("hex"))].join("|");
    groups.set(sortable, [start, ...names, Number(groups.get(sortable)?.at(-1) ?? 0) + requests]);
  }
  return [...groups].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, group]) => group);
}

test("a page that needs too many statements is refused", async () => {
  await replaceSums(
    Array.from({ length: 30 }, (_, quarter) => ({ account: 0, quarter, key: "k", model: "m", user: "", requests: 1 })),
  );
  const query = { starts: [0], end: 50, by: NO_GROUPS };
  const read = (max: number) => readUsage(store.database, ids[0] ?? "", query, page(), { rows: 10n, max });
  await expect(read(3)).rejects.toThrow(TooMuchUsage);
  expect((await read(4)).rows.map(({ requests }) => requests)).toEqual([30n]);
});

test("a page by account reads only accounts of the page, and a page that needs too many statements is refused", async () => {
  await replaceSums(
    ids.map((_, account) => ({ account, quarter: 100, key: "key_a", model: "m", user: "", requests: account + 1 })),
  );
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
