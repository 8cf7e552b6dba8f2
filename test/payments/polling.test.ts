import { expect, test, vi } from "vitest";
import type { Cells } from "../../src/database/driver/cells.ts";
import { createIds } from "../../src/domain/ids.ts";
import { Polling } from "../../src/payments/polling.ts";
import { TopUps } from "../../src/payments/top-ups.ts";
import { useOwnStore, withCall } from "../support/store.ts";

// The payments of other tests are not of this provider.
const store = useOwnStore();

test("a cell that does not answer does not delay the payments of other cells", async () => {
  const { database } = store;
  const answer = Promise.withResolvers<never[]>();
  const silent = withCall(database, () => answer.promise).home;
  let polls = 0;
  const other = withCall(database, (name, ...parameters) => {
    if (name === "topups_to_poll") polls++;
    return database.call(name, ...parameters);
  }).home;
  const cells: Cells = Object.assign(Object.create(database), { all: [silent, other] });
  const onFailure = vi.fn();
  const topUps = new TopUps({
    database: cells,
    ids: createIds(Date.now),
    provider: {} as never,
    minMicros: 1n,
    maxMicros: 1n,
    returnUrl: "",
    now: Date.now,
    onAlert: () => undefined,
  });
  const polling = new Polling({ topUps, database: cells, onFailure });
  polling.start();
  await vi.waitFor(() => expect(polls).toBeGreaterThan(1));
  answer.resolve([]);
  await polling.stop();
  expect(onFailure).not.toHaveBeenCalled();
});
