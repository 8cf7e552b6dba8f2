import { beforeEach, expect, test, vi } from "vitest";
import { createIds } from "../../src/domain/ids.ts";
import { type Lane, laneOfId } from "../../src/domain/lane.ts";
import { QUARTER_MS } from "../../src/domain/periods.ts";
import { countFailures, type FailedCall, FailureRecorder, FailureUpkeep, listFailures } from "../../src/failures/store.ts";
import { allPages } from "../support/all-pages.ts";
import { useStore } from "../support/store.ts";

const store = useStore();

let nowMs: number;
let accountId: string;
let omitted: Record<string, number>;
beforeEach(() => {
  nowMs = Math.floor(Date.now() / 60_000) * 60_000 + 5_000;
  accountId = createIds(Date.now).account();
  omitted = {};
});

function createRecorder(): FailureRecorder {
  return new FailureRecorder({
    database: store.database,
    ids: createIds(() => nowMs),
    onOmitted: (cause, calls) => {
      omitted[cause] = (omitted[cause] ?? 0) + calls;
    },
    onFailure: () => undefined,
  });
}

const CALL = { keyId: "key_1", method: "vx.v1.GenerateService/Generate", model: "m", upstream: "", requestId: "r" };
const ENDING = { status: 402, code: "insufficient_balance", message: "The balance is too low.", latencyMs: 3 };
const call = (values: Partial<FailedCall> = {}): FailedCall => ({ accountId, ...CALL, ...ENDING, ...values });

const setOwned = (isOwned: boolean) => store.owner`UPDATE vx.lanes SET is_owned = ${isOwned} WHERE lane = ${laneOfId(accountId)}`;

const ALL = { keyId: "", model: "", code: "", from: undefined, to: undefined };

async function read(filter: Partial<typeof ALL> = {}, size = 1_000, maxRead?: number) {
  const pages = await allPages((token) => {
    const after = Buffer.from(token, "base64url").toString().slice("failures:".length);
    return listFailures(store.database, accountId, { ...ALL, ...filter }, { list: "failures", size, after }, maxRead);
  });
  return { rows: pages.flat(), pages: pages.length };
}

test("two servers store 600 calls of an account and minute together, and count the others", async () => {
  const servers = [createRecorder(), createRecorder()];
  for (const server of servers) for (let i = 0; i < 400; i++) server.record(call());
  await Promise.all(servers.map((server) => server.flush()));
  expect(omitted).toEqual({ minute: 200 });
  // Each server stops sending at 600 of its own.
  for (let i = 0; i < 300; i++) servers[0]?.record(call());
  await servers[0]?.flush();
  expect(omitted).toEqual({ minute: 500 });
  const { rows } = await read();
  expect(rows).toHaveLength(601);
  expect(rows.at(-1)).toMatchObject({ code: "", omitted: 500 });
  expect(rows.slice(0, -1).every((row) => row.omitted === 0 && row.status === 402)).toBe(true);
  nowMs += 60_000;
  servers[0]?.record(call({ code: "upstream_error" }));
  await servers[0]?.flush();
  expect((await read()).rows[0]).toMatchObject({ code: "upstream_error" });
});

test("pages with filters read a limited number of rows, and together have all that match", async () => {
  const recorder = createRecorder();
  for (let i = 0; i < 50; i++) {
    nowMs += 7_000;
    recorder.record(call({ requestId: `r${i}`, code: i % 10 === 0 ? "rare" : "frequent" }));
  }
  await recorder.flush();
  const { rows, pages } = await read({ code: "rare" }, 10, 8);
  expect(rows.map((row) => row.request_id)).toEqual(["r40", "r30", "r20", "r10", "r0"]);
  // 50 calls and the rows of 6 or 7 minutes, 8 at a time.
  expect(pages).toBeGreaterThanOrEqual(7);
  expect((await read({}, 9)).rows).toHaveLength(50);
});

test("calls are counted by error and period, those that are not listed too, up to a maximum of the newest", async () => {
  const recorder = createRecorder();
  const quarter = Math.floor(nowMs / QUARTER_MS);
  const starts = [-1, 0, 1, 2].map((later) => new Date((quarter + later) * QUARTER_MS));
  const end = new Date((quarter + 3) * QUARTER_MS);
  const count = async (filter: Partial<typeof ALL> = {}, maxCounted?: number) => {
    const periods = { starts, end };
    const found = await countFailures(store.database, accountId, { ...ALL, ...filter }, periods, maxCounted);
    return { ...found, counts: found.counts.map((row) => [starts.indexOf(row.start), row.code, row.calls]) };
  };
  for (let i = 0; i < 700; i++) recorder.record(call());
  await recorder.flush();
  nowMs += QUARTER_MS;
  for (const code of ["upstream_error", "upstream_error", "canceled"]) recorder.record(call({ code }));
  recorder.record(call({ code: "canceled", keyId: "key_2", model: "n" }));
  nowMs = end.getTime();
  recorder.record(call({ code: "later" }));
  await recorder.flush();
  const second = [
    [2, "canceled", 2n],
    [2, "upstream_error", 2n],
  ];
  const first = [
    [1, "", 100n],
    [1, "insufficient_balance", 600n],
  ];
  expect(await count()).toEqual({ counts: [...first, ...second], countedFrom: starts[0] });
  // Calls that are not listed have no key.
  const ofKey = [first[0], [2, "canceled", 1n]];
  expect((await count({ keyId: "key_2" })).counts).toEqual(ofKey);
  expect((await count({ model: "n" })).counts).toEqual(ofKey);
  // 604 calls and two rows of minutes.
  expect((await count({}, 606)).countedFrom).toEqual(starts[0]);
  // From a quarter of an hour on, at which the range of another request can end.
  expect(await count({}, 5)).toEqual({ counts: second, countedFrom: starts[2] });
  expect(await count({}, 3)).toEqual({ counts: [], countedFrom: starts[3] });
});

test("what the database cannot store now is stored later, once", async () => {
  const recorder = createRecorder();
  await setOwned(false);
  recorder.record(call({ requestId: "first" }));
  await recorder.flush();
  recorder.record(call({ requestId: "second" }));
  await recorder.flush();
  expect((await read()).rows).toEqual([]);
  await setOwned(true);
  await recorder.flush();
  await recorder.flush();
  expect((await read()).rows.map((row) => row.request_id)).toEqual(["second", "first"]);
  expect(omitted).toEqual({});
});

test("after 30 attempts, calls are given up and counted", async () => {
  const recorder = createRecorder();
  await setOwned(false);
  recorder.record(call());
  for (let i = 0; i < 30; i++) await recorder.flush();
  await setOwned(true);
  await recorder.flush();
  expect(omitted).toEqual({ database: 1 });
  expect((await read()).rows).toEqual([]);
});

test("a full queue only counts, and no account has more than 600 places in it", async () => {
  const recorder = createRecorder();
  const ids = createIds(Date.now);
  for (let i = 0; i < 1_000; i++) recorder.record(call());
  expect(omitted).toEqual({ minute: 400 });
  for (let i = 0; i < 20 * 500; i++) {
    if (i % 500 === 0) accountId = ids.account();
    recorder.record(call());
  }
  expect(omitted).toEqual({ minute: 400, queue: 600 + 10_000 - 8_192 });
  await recorder.flush();
  expect((await read()).rows).toMatchObject([{ omitted: 500 }]);
});

test("texts that PostgreSQL refuses, and long ones, are stored as far as possible", async () => {
  const recorder = createRecorder();
  recorder.record(call({ message: `a\0b\ud800c "quoted" \\ (x, y) {z}\n${"long ".repeat(200)}` }));
  await recorder.flush();
  const [row] = (await read()).rows;
  expect(row?.message).toHaveLength(500);
  expect(row?.message).toMatch(/^a\ufffdb\ufffdc "quoted" \\ \(x, y\) \{z\}\nlong long/);
});

test("calls without an owner are stored a second later without another call", async () => {
  createRecorder().record(call({ requestId: "alone" }));
  await vi.waitFor(async () => expect((await read()).rows).toHaveLength(1));
});

test("old calls and minutes are deleted, 10,000 at a time, and others stay", async () => {
  const recorder = createRecorder();
  recorder.record(call({ requestId: "new" }));
  await recorder.flush();
  const lane: Lane = laneOfId(accountId);
  await store.owner`
    INSERT INTO vx.failures (lane, account_id, id, created_at)
    SELECT ${lane}, ${accountId}, 'fail_0' || to_char(i, 'FM000000'), now() - interval '2 days' FROM generate_series(1, 10001) i`;
  const upkeep = new FailureUpkeep(store.database, 1);
  const left = async () => {
    const [row] = await store.owner<{ n: number }[]>`SELECT count(*)::int AS n FROM vx.failures WHERE account_id = ${accountId}`;
    return row?.n;
  };
  await upkeep.maintain();
  expect(await left()).toBe(3);
  await upkeep.maintain();
  expect(await left()).toBe(2);
  for (let i = 0; i < 120; i++) await upkeep.maintain();
  expect((await read()).rows.map((row) => row.request_id)).toEqual(["new"]);
});
