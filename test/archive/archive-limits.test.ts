import { afterEach, beforeEach, expect, test } from "vitest";
import { readPage } from "../../src/domain/page.ts";
import { audit } from "../../src/store/audit.ts";
import type { LimitOwner } from "../../src/store/limits.ts";
import { readUsage } from "../../src/store/usage-sums.ts";
import { setTestLimit } from "../support/limits.ts";
import { charge } from "../support/payer.ts";
import { started } from "../support/started.ts";
import { createTestBilling } from "../support/store.ts";
import { type LedgerOfMonths, NOT_ABORTED, prepareLedgers, THIRD_LAST } from "./ledger-of-months.ts";
import { thisMonth } from "./past-months.ts";

let ledger: LedgerOfMonths;

const ledgers = started(() => prepareLedgers());
beforeEach(async () => {
  ledger = await ledgers.create();
});
afterEach(() => ledger.drop());

const problems = async () => (await audit(ledger.pool, NOT_ABORTED)).findings.map(({ detail }) => detail);

test("the audit compares counters whose entries are archived with the usage, if it has their sums", async () => {
  const { pool, busy, database } = ledger;
  const account: LimitOwner = { kind: "account", id: busy.accountId };
  const total = { metric: "cost", amount: 1_000n, window: "total" } as const;
  const minute = await setTestLimit(pool, account, { metric: "cost", amount: 1_000n, window: "minute" });
  const ofUsers = await setTestLimit(pool, account, { ...total, perUser: true });
  const ofPlan = await setTestLimit(pool, { kind: "plan", id: "scale" }, total);
  await charge(createTestBilling(pool), busy, 13n, "ada");
  // The charges of the third last month are those of one minute: 1, 2 and 3. The plan has counted from then on.
  const start = new Date(Date.UTC(1970, THIRD_LAST, 2));
  await changeCounter(minute, { spent: 6, windowEnd: new Date(start.getTime() + 60_000), countedSince: start });
  await changeCounter(ofPlan, { spent: 91, countedSince: start });
  expect(await problems()).toEqual([]);
  await ledger.archive(thisMonth);
  expect(await problems()).toEqual([]);

  // 1 + 3 + … + 11 + 13
  await changeCounter(ofUsers, { spent: 48 }, "ada");
  expect(await problems()).toEqual([expect.stringContaining("spent 48, ledger adds up to 49")]);
  await changeCounter(ofUsers, { spent: 49 }, "ada");
  await database.owner`UPDATE vx.usage_quarters SET user_id = '(other)'
    WHERE user_id IN (SELECT user_id FROM vx.end_users WHERE name LIKE 'a "user"%')`;
  await changeCounter(ofUsers, { spent: 48 }, "ada");
  expect((await problems()).filter((text) => text.startsWith("limit "))).toEqual([]);
});

test("the usage has the sums of end users of archived months", async () => {
  const usage = async () => {
    const by = { account: false, key: false, model: false, user: true, upstream: false };
    const query = { starts: [0], end: Math.ceil(Date.now() / 900_000), by };
    const page = readPage("usage", { pageSize: 0, pageToken: "" }, []);
    const { rows } = await readUsage(ledger.pool, ledger.busy.accountId, query, page);
    return Object.fromEntries(rows.map(({ user_name, cost_micros }) => [user_name, cost_micros]));
  };
  const expected = { ada: 36n, 'a "user" \\ é': 42n };
  expect(await usage()).toEqual(expected);
  await ledger.archive(thisMonth);
  expect(await usage()).toEqual(expected);
});

async function changeCounter(
  limitId: string,
  to: { readonly spent: number; readonly windowEnd?: Date; readonly countedSince?: Date },
  user = "",
): Promise<void> {
  const { owner } = ledger.database;
  const place = owner`array_position((counter).limit_ids, ${limitId})`;
  const changed = await owner`
    UPDATE vx.limit_counters SET counter.spent[${place}] = ${to.spent},
      counter.window_ends[${place}] = coalesce(${to.windowEnd ?? null}, (counter).window_ends[${place}]),
      counter.counted_since[${place}] = coalesce(${to.countedSince ?? null}, (counter).counted_since[${place}])
    WHERE ${limitId} = ANY ((counter).limit_ids) AND user_id
      IN (SELECT vx.user_digest(user_salt, ${user}) FROM vx.accounts)`;
  expect(changed.count).toBe(1);
}
