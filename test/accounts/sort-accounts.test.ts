import { beforeAll, expect, test } from "vitest";
import { type AccountSort, FiguresUpkeep, sortAccounts } from "../../src/accounts/store.ts";
import type { Cells } from "../../src/database/driver/cells.ts";
import { laneOfId, withLane } from "../../src/domain/lane.ts";
import { readPage } from "../../src/domain/page.ts";
import { countPlans } from "../../src/plans/store.ts";
import { pagesRead } from "../database/pages-read.ts";
import { allPages } from "../support/all-pages.ts";
import { useOwnStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const cells = [useOwnStore(), useOwnStore()] as const;
const FEW_PAGES = 120;

/** The first cell owns the lower half of the lanes. */
function bothCells(): Cells {
  const [first, second] = cells.map(({ database }) => database);
  return Object.assign(Object.create(first as object), {
    all: [first, second],
    owns: (cell: number, lane: number) => lane < 512 === (cell === 0),
    nameOf: (cell: number) => "ab".charAt(cell),
  });
}

type TestAccount = {
  readonly name: string;
  readonly balance: number;
  readonly state?: "suspended" | "closed";
  readonly today?: number;
  readonly earlier?: number;
};

/** Two have the same balance, and the spend of the last month does not count. */
const ACCOUNTS: readonly TestAccount[] = [
  { name: "Ada", balance: 5, today: 7 },
  { name: "berta", balance: 40, state: "suspended", today: 9 },
  { name: "Carl", balance: 40, earlier: 2 },
  { name: "dora", balance: 0, state: "closed" },
  { name: "Emil", balance: 9_000_000_000, today: 8, earlier: 1 },
  { name: "fritz", balance: 11, state: "suspended" },
];

/** On the first day of a month, nothing was spent earlier in it. */
const isFirstDay = new Date().getUTCDate() === 1;

/** Inserts the account into the cell of the lane. */
async function insert(lane: number, { name, balance, state, today = 0, earlier = 0 }: TestAccount): Promise<void> {
  const id = withLane(typeIds.account(), lane);
  const { owner } = cells[lane < 512 ? 0 : 1];
  await owner`
    INSERT INTO vx.accounts (lane, id, name, plan, created_at, balance_micros, suspended_at, closed_at, last_seq)
    VALUES (${lane}, ${id}, ${name}, 'free', now(), ${balance}, ${state ? new Date() : null},
      ${state === "closed" ? new Date() : null}, 1)`;
  const month = new Date();
  month.setUTCDate(1);
  month.setUTCHours(0, 0, 0, 0);
  const quarterOf = (at: number) => Math.floor(at / 900_000);
  const sums = [
    [quarterOf(Date.now()), today],
    ...(isFirstDay ? [] : [[quarterOf(month.getTime()), earlier]]),
    [quarterOf(month.getTime()) - 1, 1_000],
  ];
  for (const [quarter = 0, micros = 0] of sums)
    await owner`
      INSERT INTO vx.usage_quarters VALUES (${lane}, ${id}, ${quarter}, 'key', 'm', '', 1, 1, 1, 0, 0, 0, 0, 0, 0, ${micros})`;
}

async function refresh(): Promise<void> {
  for (const { database } of cells) {
    const upkeep = new FiguresUpkeep(database);
    for (let second = 0; second < 60; second++) await upkeep.maintain();
  }
}

beforeAll(async () => {
  for (const [i, account] of ACCOUNTS.entries()) await insert(i + 512 * (i % 2), account);
  await refresh();
});

/** All pages. */
async function list(query: Partial<AccountSort>, pageSize: number) {
  const sort: AccountSort = { sort: "name", state: "", belowMicros: undefined, ...query };
  const pages = await allPages((pageToken) => sortAccounts(bothCells(), sort, readPage("accounts", { pageSize, pageToken }, [])));
  expect(Math.max(...pages.map(({ length }) => length))).toBeLessThanOrEqual(pageSize);
  return pages.flat();
}

const lists: [query: Partial<AccountSort>, names: string][] = [
  [{ sort: "name" }, "Ada berta Carl dora Emil fritz"],
  [{ sort: "name", state: "active" }, "Ada Carl Emil"],
  [{ sort: "name", state: "suspended" }, "berta fritz"],
  [{ sort: "newest" }, "fritz Emil dora Carl berta Ada"],
  [{ sort: "newest", state: "closed" }, "dora"],
  [{ sort: "lowest_balance" }, "dora Ada fritz berta Carl Emil"],
  [{ sort: "highest_balance" }, "Emil Carl berta fritz Ada dora"],
  [{ sort: "lowest_balance", state: "active" }, "Ada Carl Emil"],
  [{ sort: "lowest_balance", belowMicros: 40n }, "dora Ada fritz"],
  [{ sort: "highest_balance", state: "suspended", belowMicros: 40n }, "fritz"],
  [{ sort: "spent_today" }, "berta Emil Ada"],
  [{ sort: "spent_month" }, isFirstDay ? "berta Emil Ada" : "Emil berta Ada Carl"],
  [{ sort: "spent_month", state: "active" }, isFirstDay ? "Emil Ada" : "Emil Ada Carl"],
];

test.each(lists)("%o lists the accounts of all cells in order, on pages of every size", async (query, names) => {
  for (const pageSize of [1, 2, 3, 100]) {
    const rows = await list(query, pageSize);
    expect(rows.map(({ name }) => name).join(" ")).toBe(names);
  }
});

test("figures have what was charged today and in this month, and follow the ledger and the state", async () => {
  const figures = async () =>
    (await list({}, 100)).map(({ name, day_micros: day, month_micros: month }) => `${name} ${day} ${month}`);
  const earlier = isFirstDay ? 0 : 1;
  expect(await figures()).toEqual([
    "Ada 7 7",
    "berta 9 9",
    `Carl 0 ${2 * earlier}`,
    "dora 0 0",
    `Emil 8 ${8 + earlier}`,
    "fritz 0 0",
  ]);
  for (const { owner } of cells) {
    await owner`UPDATE vx.accounts SET balance_micros = 3, last_seq = 2, suspended_at = NULL WHERE name = 'fritz'`;
    await owner`
      UPDATE vx.usage_quarters u SET cost_micros = cost_micros + 30 FROM vx.accounts a
      WHERE a.name = 'Ada' AND u.account_id = a.id AND u.cost_micros = 7`;
    await owner`UPDATE vx.accounts SET last_seq = 2 WHERE name = 'Ada'`;
    // The figures of another day.
    await owner`UPDATE vx.account_figures SET day = day - 1 WHERE account_id = (SELECT id FROM vx.accounts WHERE name = 'berta')`;
  }
  await refresh();
  expect((await figures()).slice(0, 2)).toEqual(["Ada 37 37", "berta 0 9"]);
  const active = await list({ sort: "lowest_balance", state: "active" }, 100);
  expect(active[0]?.name).toBe("fritz");
  expect((await list({ sort: "spent_today" }, 100)).map(({ name }) => name)).toEqual(["Ada", "Emil"]);
  // A suspension is no entry of the ledger.
  for (const { owner } of cells) await owner`UPDATE vx.accounts SET suspended_at = now() WHERE name = 'fritz'`;
  await refresh();
  const stillActive = await list({ sort: "lowest_balance", state: "active" }, 100);
  expect(stillActive.map(({ name }) => name)).not.toContain("fritz");
});

test("accounts that did not change are not written, and those of lanes of other cells neither", async () => {
  const { database, owner } = cells[0];
  const read = () => owner`SELECT account_id, xmin::text FROM vx.account_figures ORDER BY account_id`;
  const before = await read();
  await database.call("refresh_figures", 0, 1_023);
  expect(await read()).toEqual(before);
  const id = typeIds.account();
  await owner`INSERT INTO vx.accounts (lane, id, name, plan, created_at) VALUES (${laneOfId(id)}, ${id}, 'z', 'free', now())`;
  await owner`UPDATE vx.lanes SET is_owned = false WHERE lane = ${laneOfId(id)}`;
  await database.call("refresh_figures", 0, 1_023);
  expect(await read()).toEqual(before);
  await owner`UPDATE vx.lanes SET is_owned = true WHERE lane = ${laneOfId(id)}`;
  await owner`DELETE FROM vx.accounts WHERE id = ${id}`;
});

test("plans have the open accounts and the active keys of all cells", async () => {
  const { owner } = cells[0];
  const [account] = await owner<{ lane: number; id: string }[]>`SELECT lane, id FROM vx.accounts LIMIT 1`;
  if (!account) throw new Error("the cell has no account");
  const keys = [
    { expires: null, revoked: null },
    { expires: new Date(0), revoked: null },
    { expires: null, revoked: new Date() },
  ];
  for (const { expires, revoked } of keys) {
    const id = typeIds.key(account.lane);
    await owner`
      INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, visible_start, visible_end, created_at,
        expires_at, revoked_at)
      VALUES (${account.lane}, sha256(${id}::bytea), ${id}, ${account.id}, 'x', 'pro', 1, 'abcd', 'wxyz', now(), ${expires}, ${revoked})`;
  }
  const counts = await countPlans(bothCells());
  expect(counts.get("free")).toEqual({ accounts: 5n, activeKeys: 0n });
  expect(counts.get("pro")).toEqual({ accounts: 0n, activeKeys: 1n });
  expect(counts.get("scale")).toEqual({ accounts: 0n, activeKeys: 0n });
});

test("a page of many accounts reads few disk pages in every order", async () => {
  const { owner, database } = cells[1];
  await owner`
    INSERT INTO vx.accounts (lane, id, name, plan, created_at, balance_micros, suspended_at, last_seq)
    SELECT 600 + i % 100, 'acct_' || lpad(i::text, 26, '0'), 'name ' || i, 'free', now(), i,
      CASE WHEN i % 1000 = 0 THEN now() END, 1 FROM generate_series(1, 20000) i`;
  await owner`
    INSERT INTO vx.usage_quarters
    SELECT lane, id, extract(epoch FROM now())::bigint / 900, 'k', 'm', '', 1, 1, 1, 0, 0, 0, 0, 0, 0, balance_micros
    FROM vx.accounts WHERE name LIKE 'name %'`;
  await database.call("refresh_figures", 0, 1_023);
  const calls = ["name", "lowest_balance", "highest_balance", "spent_today", "spent_month"].flatMap((sort) =>
    ["", "active", "suspended"].flatMap((state) => [
      `sort_accounts('${sort}', '${state}', NULL, '', '', 10)`,
      `sort_accounts('${sort}', '${state}', NULL, '${sort === "name" ? "name 1" : "10500"}', 'acct_', 10)`,
    ]),
  );
  calls.push("sort_accounts('newest', 'suspended', NULL, '', '', 10)");
  calls.push("sort_accounts('highest_balance', 'active', 9000, '', '', 10)");
  for (const analyzed of [false, true]) {
    if (analyzed) await owner`ANALYZE vx.accounts, vx.account_figures`;
    for (const call of calls) {
      await owner.begin(async (transaction) => {
        const { pages, rows } = await pagesRead(transaction, call);
        expect([call, rows]).toEqual([call, 10]);
        expect(pages, call).toBeLessThan(FEW_PAGES);
      });
    }
  }
});
