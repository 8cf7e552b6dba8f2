import { beforeAll, expect, test } from "vitest";
import { readPage } from "../../src/domain/page.ts";
import type { Billing } from "../../src/generations/billing.ts";
import { listEntries } from "../../src/ledger/store.ts";
import { dumpTables } from "../support/database.ts";
import { limitProblems, setTestLimit } from "../support/limits.ts";
import { charge, createPayer, holdOf, moneyProblems, type Payer } from "../support/payer.ts";
import { createTestBilling, findingsOf, useOwnStore } from "../support/store.ts";

const NAME = "ada@example.com";

const store = useOwnStore();
let billing: Billing;

beforeAll(() => {
  billing = createTestBilling(store.database);
});

const limit = ({ accountId }: Payer, values: Omit<Parameters<typeof setTestLimit>[2], "perUser">) =>
  setTestLimit(store.database, { kind: "account", id: accountId }, { perUser: true, ...values });

async function usersOf({ accountId }: Payer): Promise<string[]> {
  const page = readPage("entries", { pageSize: 50, pageToken: "" }, []);
  const { rows } = await listEntries(store.database, accountId, page);
  return rows.filter(({ kind }) => kind === "generation").map(({ user_name }) => user_name);
}

test("only one row has the name of an end user; all other rows have its digest", async () => {
  const payer = await createPayer(store.database, 1_000n);
  for (const window of ["day", "total"] as const) await limit(payer, { metric: "tokens", amount: 100n, window });
  for (const _ of [1, 2]) await charge(billing, payer, 10n, NAME);
  await billing.hold({ ...holdOf(payer, 10n), user: NAME });
  const rows = (await dumpTables(store)).split("\n").filter((row) => row.includes(NAME));
  expect(rows).toEqual([expect.stringMatching(/,acct_\w+,user_[0-9a-f]{32},ada@example.com\)$/)]);
  expect(await usersOf(payer)).toEqual([NAME, NAME]);
});

test("an end user has different digests in two accounts", async () => {
  const payers = [await createPayer(store.database, 10n), await createPayer(store.database, 10n)];
  for (const payer of payers) await charge(billing, payer, 1n, NAME);
  const digests = await store.owner`
    SELECT DISTINCT user_id FROM vx.ledger WHERE user_id <> '' AND account_id IN ${store.owner(payers.map(({ accountId }) => accountId))}`;
  expect(digests).toHaveLength(2);
});

test("a refused call leaves no name", async () => {
  const payer = await createPayer(store.database, 10n);
  await limit(payer, { metric: "cost", amount: 0n, window: "day" });
  const hold = { ...holdOf(payer, 1n), user: "refused" };
  expect(await billing.hold(hold)).toMatchObject({ outcome: "limited" });
  expect(await dumpTables(store)).not.toContain("refused");
});

test("without names and salt, entries show digests, and hashes, sums and counters stay valid", async () => {
  const payer = await createPayer(store.database, 1_000n);
  await limit(payer, { metric: "cost", amount: 1_000n, window: "day" });
  for (const user of [NAME, "bob", NAME]) await charge(billing, payer, 1n, user);
  expect(await usersOf(payer)).toEqual([NAME, "bob", NAME]);
  await store.owner`DELETE FROM vx.end_users WHERE account_id = ${payer.accountId}`;
  await store.owner`UPDATE vx.accounts SET user_salt = NULL WHERE id = ${payer.accountId}`;
  const [ada, bob, again] = await usersOf(payer);
  expect(ada).toMatch(/^user_[0-9a-f]{32}$/);
  expect(bob).toMatch(/^user_[0-9a-f]{32}$/);
  expect(again).toBe(ada);
  expect(bob).not.toBe(ada);
  expect(await findingsOf(store.database, payer.accountId)).toEqual([]);
  expect(await limitProblems(store.owner, payer.accountId)).toEqual([]);
  expect(await moneyProblems(store)).toEqual([]);
});
