import { createHash } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { callerOf } from "../../src/database/action.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { pagesOfOneCall } from "../database/pages-read.ts";
import { actionOfKey, TEST_CALLER } from "../support/action.ts";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";

const ACCOUNT = "acct_1";
const LANE = laneOfId(ACCOUNT);
const KEYS = 20_000;
const HOLD = `bill('srv', NULL, ARRAY[$lane], '{}',
  ARRAY[ROW(${LANE}, '${ACCOUNT}', 'gen_x', 'key_parent', 0, 600, NULL, NULL, 'm', '', 0, sha256('parent'), 7, NULL, 0)::vx.hold_item])`;
/** A lookup or an insert with an index reads a few pages of 8 KiB. */
const FEW_PAGES = 150;

const database = started(() => createTestDatabase());
beforeAll(async () => {
  const { owner } = database;
  // The number of keys matters here, not their ids.
  await owner`ALTER TABLE vx.keys DROP CONSTRAINT lane_follows_id`;
  await owner`SELECT vx.create_account(${TEST_CALLER}, ${LANE}::smallint, ${ACCOUNT}, 'test', 'free')`;
  await owner`
    INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, visible_start, visible_end,
                         created_at, expires_at, revoked_at)
    SELECT ${LANE}::smallint, sha256(i::text::bytea), 'key_' || lpad(i::text, 9, '0'), ${ACCOUNT}, 'old', 'free', 7, 'abcd',
           'wxyz', now(), CASE WHEN i % 2 = 0 THEN now() - interval '1 day' END, CASE WHEN i % 2 = 1 THEN now() END
    FROM generate_series(1, ${KEYS}::int) i`;
  await owner`
    INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, visible_start, visible_end, created_at)
    VALUES (${LANE}, sha256('parent'), 'key_parent', ${ACCOUNT}, 'parent', 'free', 7, 'abcd', 'wxyz', now())`;
  await owner`ANALYZE`;
});

const PARENT = { accountId: ACCOUNT, keyId: "key_parent", fingerprint: createHash("sha256").update("parent").digest("hex") };

const NEW_KEY = {
  id: "key_x",
  fingerprint: `\\x${createHash("sha256").update("x").digest("hex")}`,
  name: "x",
  visible_start: "abcd",
  visible_end: "wxyz",
};

test.each([
  {
    what: "creating a key",
    call: "create_key($act, $lane, $account, $key, 7::smallint)",
  },
  {
    what: "creating a key with a parent key",
    call: "create_key($parent, $lane, $account, $key, 3::smallint)",
  },
  { what: "reading an old key", call: "view_keys($lane, $account, 'key_000000001', '', 1)" },
  { what: "listing a page of keys", call: "view_keys($lane, $account, '', 'key_000010000', 51)" },
  { what: "revoking a key", call: "revoke_key($act, $lane, 'key_000000002')" },
  { what: "placing a hold", call: HOLD },
  { what: "setting a limit", call: "set_key_limit($act, $lane, 'key_000000002', 5)" },
])("$what reads few pages, for any number of revoked or expired keys", async ({ call }) => {
  const text = call
    .replace("$act", `'${TEST_CALLER}'`)
    .replace("$parent", `'${callerOf(actionOfKey(PARENT))}'`)
    .replace("$key", `'${JSON.stringify(NEW_KEY)}'`)
    .replace("$lane", `${LANE}::smallint`)
    .replace("$account", `'${ACCOUNT}'`);
  const { owner } = database;
  const pages: number[] = [];
  // Also with the generic plan that PostgreSQL caches after several calls.
  await owner.begin(async (transaction) => {
    for (let i = 0; i < 8; i++) {
      await transaction.savepoint(async (savepoint) => {
        pages.push((await pagesOfOneCall(savepoint, text)).pages);
        await savepoint`DELETE FROM vx.keys WHERE id = 'key_x'`;
        await savepoint`DELETE FROM vx.holds`;
      });
    }
  });
  // The first call fills caches. Changes of other tables may empty them before another one, so one call of each plan counts.
  expect(Math.min(...pages.slice(1, 5))).toBeLessThan(FEW_PAGES);
  expect(Math.min(...pages.slice(5))).toBeLessThan(FEW_PAGES);
});

test("a call that takes no slot reads few pages, even if its admission was planned with few windows", async () => {
  const call = `admit(ARRAY[ROW(${LANE}, sha256('parent'), 0, 0, 0, 0, 0, 0, NULL)::vx.admit_item])`;
  await database.owner.begin(async (transaction) => {
    for (let i = 0; i < 2; i++) await pagesOfOneCall(transaction, call);
    await transaction`
      INSERT INTO vx.key_minutes (lane, key_id, minute, used, granted, rpm, last_used_at)
      SELECT ${LANE}::smallint, 'key_' || i, 0, 0, 0, 1, now() FROM generate_series(1, ${KEYS}::int) i`;
    expect((await pagesOfOneCall(transaction, call)).pages).toBeLessThan(FEW_PAGES);
  });
});

test("recently revoked keys are found by an index", async () => {
  const [row] = await database.owner`EXPLAIN (FORMAT JSON) SELECT id FROM vx.keys WHERE revoked_at > now() + interval '1 second'`;
  expect(JSON.stringify(row)).toContain("keys_by_revocation");
});
