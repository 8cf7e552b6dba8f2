import { test } from "vitest";
import { expectFewPages, pagesRead } from "../database/pages-read.ts";
import { useOwnStore } from "../support/store.ts";

const store = useOwnStore();

test("lists of events read few pages, whatever the type and the number of events", async () => {
  const { owner } = store;
  /** With the numbers of rows. */
  const calls = {
    "list_events(1::smallint, 'acct_1', '', 0, false, 51)": 51,
    "list_events(1::smallint, 'acct_1', '', 19000, false, 51)": 51,
    "list_events(1::smallint, 'acct_1', 'key.created', 0, false, 51)": 2,
    "list_events(1::smallint, 'acct_1', 'credit.posted,key.created', 10000, false, 51)": 51,
    "list_events(1::smallint, 'acct_1', '', NULL, true, 51)": 51,
    "list_events(1::smallint, 'acct_1', 'key.created', NULL, true, 51)": 2,
    "list_events(1::smallint, 'acct_1', 'credit.posted,key.created', 20000, true, 51)": 51,
    "list_all_events('', 0, '', 51)": 51,
    "list_all_events('key.created,account.suspended', 0, '', 51)": 2,
    "event_position(1::smallint, 'acct_1', 'evt_10000', now(), 1)": 1,
  };
  await owner.begin(async (session) => {
    // The plans of this connection are made while the table is empty.
    for (const call of Object.keys(calls).slice(0, -1)) await pagesRead(session, call);
    await session`INSERT INTO vx.accounts (lane, id, name, plan, created_at) VALUES (1, 'acct_1', 'test', 'free', now())`;
    await session`
      INSERT INTO vx.events (lane, account_id, seq, id, type, created_at, data)
      SELECT 1, 'acct_1', n, 'evt_' || n, CASE WHEN n IN (1, 40000) THEN 'key.created' ELSE 'credit.posted' END,
             clock_timestamp() + n * interval '1 ms', '{}' FROM generate_series(1, 40000) n`;
    await expectFewPages(session, calls, "events");
  });
});
