import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { OverviewFeed } from "../../src/operators/overview-feed.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { useOwnStore } from "../support/store.ts";

const store = useOwnStore();

/** A feed whose minutes the test ends, and what counts a minute of calls, of which `failed` failed, and their charge. */
async function startFeed() {
  const metrics = createMetrics("test");
  const drain = new AbortController();
  let work: (() => void) | undefined;
  const feed = new OverviewFeed({
    database: store.database,
    isReachable: () => true,
    auditHours: 24,
    readMetrics: async () => metrics.registry,
    onFailure: (error) => {
      throw error;
    },
    everyMinute: (record) => {
      work = record;
      return () => {
        work = undefined;
      };
    },
    drainSignal: drain.signal,
  });
  // The metrics are read before the next turn of the event loop.
  await setImmediate();
  const count = (calls: number, failed: number, micros: number) => {
    metrics.calls.inc(["vx.v1.GenerateService/Generate", "rest", "ok"], calls - failed);
    metrics.calls.inc(["vx.v1.GenerateService/Generate", "rest", "internal"], failed);
    metrics.calls.inc(["vx.admin.v1.ConsoleService/WatchOverview", "connect", "ok"], 7);
    metrics.failures.inc(["internal"], failed);
    metrics.charges.inc(["m"], micros);
  };
  const endMinute = async () => {
    work?.();
    await setImmediate();
  };
  return { feed, drain, count, endMinute, hasTimer: () => work !== undefined };
}

async function firstOverview(feed: OverviewFeed) {
  const stop = new AbortController();
  for await (const overview of feed.watch("op_1", stop.signal)) {
    stop.abort();
    return overview;
  }
  throw new Error("the feed ended");
}

test("a page that connects gets every minute of the last hour at once, the oldest first", async () => {
  const { feed, drain, count, endMinute, hasTimer } = await startFeed();
  for (let minute = 1; minute <= 65; minute++) {
    count(minute, minute % 2, 10 * minute);
    await endMinute();
  }
  // In the minute that has not ended.
  count(100, 50, 1);
  const { lastHour } = await firstOverview(feed);
  const minutes = Array.from({ length: 60 }, (_, index) => index + 6);
  expect(lastHour?.minutes).toEqual(
    minutes.map((minute) => ({ calls: BigInt(minute), failedCalls: BigInt(minute % 2), chargedMicros: BigInt(10 * minute) })),
  );
  const sum = minutes.reduce((total, minute) => total + minute, 0);
  expect(lastHour).toMatchObject({
    calls: BigInt(sum + 100),
    failures: [{ reason: "internal", calls: 30n + 50n }],
    chargedMicros: BigInt(10 * sum + 1),
  });
  drain.abort();
  expect(hasTimer()).toBe(false);
});

test("a page that connects to a server of two minutes gets these", async () => {
  const { feed, drain, count, endMinute } = await startFeed();
  count(3, 1, 5);
  await endMinute();
  await endMinute();
  const { lastHour } = await firstOverview(feed);
  expect(lastHour?.minutes).toEqual([
    { calls: 3n, failedCalls: 1n, chargedMicros: 5n },
    { calls: 0n, failedCalls: 0n, chargedMicros: 0n },
  ]);
  drain.abort();
});
