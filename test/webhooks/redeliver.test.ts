import type postgres from "postgres";
import { expect, test } from "vitest";
import { TEST_CALLER } from "../support/action.ts";
import { useOwnStore } from "../support/store.ts";

const store = useOwnStore();

const EVENTS = 2_000;
type Redelivered = { readonly renewed: number; readonly last: bigint | null; readonly last_id: string | null };

const CALL = (accountId: string, after: bigint, afterId: string, limit: number) =>
  `SELECT * FROM vx.redeliver('${TEST_CALLER}', 'whk_1', '', 1::smallint, '${accountId}', '', NULL, NULL, 1023::smallint, ${after}, '${afterId}', ${limit}, true)`;

async function withEvents(use: (session: postgres.TransactionSql) => Promise<void>): Promise<void> {
  await store.owner
    .begin(async (session) => {
      await session`SET LOCAL track_functions = 'all'`;
      await session`INSERT INTO vx.accounts (lane, id, name, plan, created_at) VALUES (1, 'acct_1', 'test', 'free', now())`;
      await session`
        INSERT INTO vx.events (lane, account_id, seq, id, type, created_at, data)
        SELECT 1, 'acct_1', n, 'evt_' || n, 'credit.posted', now() - interval '1 hour' + n * interval '1 ms', '{}'
        FROM generate_series(1, ${EVENTS}) n`;
      await session`INSERT INTO vx.event_ends VALUES (1, 'acct_1', ${EVENTS}, now())`;
      // Every tenth failed, with an attempt that would be due tomorrow.
      await session`
        INSERT INTO vx.deliveries (lane, account_id, seq, webhook_id, event_id, created_at, due_at, attempts, state)
        SELECT lane, account_id, seq, 'whk_1', id, created_at, now() + interval '1 day', 10,
               CASE WHEN seq % 10 = 0 THEN 'failed' ELSE 'delivered' END::vx.delivery_state
        FROM vx.events WHERE account_id = 'acct_1'`;
      await use(session);
      throw ROLLBACK;
    })
    .catch((error: unknown) => {
      if (error !== ROLLBACK) throw error;
    });
}

test("a redelivery of a time makes failed events due at once, and calls no function for each event", async () => {
  await withEvents(async (session) => {
    const [done] = await session.unsafe<Redelivered[]>(CALL("acct_1", 0n, "", 10 * EVENTS));
    expect(done).toEqual({ renewed: EVENTS / 10, last: null, last_id: null });
    const due = await session<{ seq: bigint }[]>`
      SELECT seq FROM vx.deliveries
      WHERE webhook_id = 'whk_1' AND state = 'pending' AND attempts = 0 AND due_at <= clock_timestamp() ORDER BY due_at`;
    expect(due.map(({ seq }) => Number(seq))).toEqual(Array.from({ length: EVENTS / 10 }, (_, i) => 10 * (i + 1)));
    const [called] = await session<{ calls: number }[]>`SELECT sum(calls)::integer AS calls FROM pg_stat_xact_user_functions`;
    expect(called?.calls).toBeGreaterThan(0);
    expect(called?.calls).toBeLessThan(20);
  });
});

test.each(["acct_1", ""])("a statement looks at a limited number of events, for the account %j", async (accountId) => {
  await withEvents(async (session) => {
    const renewed: number[] = [];
    let last: Redelivered | undefined;
    do {
      const call = CALL(accountId, last?.last ?? 0n, last?.last_id ?? "", 300);
      [last] = await session.unsafe<Redelivered[]>(call);
      renewed.push(last?.renewed ?? -1);
    } while (last?.last);
    expect(renewed).toEqual([30, 30, 30, 30, 30, 30, 20]);
    const due = await session<{ seq: bigint }[]>`
      SELECT seq FROM vx.deliveries WHERE webhook_id = 'whk_1' AND state = 'pending' ORDER BY due_at`;
    expect(due.map(({ seq }) => Number(seq))).toEqual(Array.from({ length: 200 }, (_, i) => 10 * (i + 1)));
  });
});

const ROLLBACK = new Error("rolled back");
