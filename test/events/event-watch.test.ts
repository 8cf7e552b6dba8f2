import { expect, test } from "vitest";
import type { Cells } from "../../src/database/driver/cells.ts";
import { EventWatch } from "../../src/events/watch.ts";
import { useOwnStore, withCall } from "../support/store.ts";

const store = useOwnStore();

/** In lane 0. */
const ACCOUNT = "acct_01kb0zq5p9e8tvm4x2c7h3j000";
/** In lane 1. */
const OTHER = "acct_01kb0zq5p9e8tvm4x2c7h3j001";
/** As members watch. */
const NO_KEY = { keyId: "" };

test("a cell that does not answer delays only its own watchers", async () => {
  const { database, owner } = store;
  await owner`INSERT INTO vx.event_ends VALUES (0, ${ACCOUNT}, 1, now())`;
  const silent = withCall(database, () => Promise.withResolvers<never>().promise).home;
  const cells: Cells = Object.assign(Object.create(database), {
    all: [database, silent],
    owns: (cell: number, lane: number) => cell === lane,
  });
  const drain = new AbortController();
  const watch = new EventWatch({ database: cells, drainSignal: drain.signal, onFailure: () => undefined });
  const waiting = watch.open(OTHER, NO_KEY, () => undefined).wait(0n, drain.signal);
  const watcher = watch.open(ACCOUNT, NO_KEY, () => undefined);
  expect(await watcher.wait(0n, drain.signal)).toBe(1n);
  await owner`UPDATE vx.event_ends SET seq = 2`;
  expect(await watcher.wait(1n, drain.signal)).toBe(2n);
  drain.abort();
  await expect(waiting).rejects.toThrow("stops");
});
