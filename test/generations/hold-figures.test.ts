import { expect, test } from "vitest";
import { readHoldFigures } from "../../src/operators/service-figures.ts";
import { useOwnStore } from "../support/store.ts";

const store = useOwnStore();

test("open and expired holds are counted separately", async () => {
  expect(await readHoldFigures(store.database)).toEqual({ open: 0, heldMicros: 0, expired: 0 });
  await store.owner`
    INSERT INTO vx.holds (lane, id, account_id, server_id, amount_micros, expires_at) VALUES
      (1, 'gen_1', 'acct_1', 'one', 7, clock_timestamp() + interval '1 minute'),
      (1, 'gen_2', 'acct_1', 'one', 5, clock_timestamp() + interval '1 minute'),
      (2, 'gen_3', 'acct_2', 'one', 3, clock_timestamp() - interval '1 second')`;
  expect(await readHoldFigures(store.database)).toEqual({ open: 2, heldMicros: 12, expired: 1 });
});
