import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CellToMigrate } from "../../src/database/cells/migrate-cell.ts";
import { type SplitOptions, type SplitStep, splitCell } from "../../src/database/cells/split-cell.ts";
import { loginTo, urlTo } from "../support/embedded.ts";
import { type PrimaryServer, type Standby, startStandby } from "../support/standby.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { RunDatabase } from "../torture/database.ts";

const LANES = Array.from({ length: 512 }, (_, i) => 512 + i);
const folder = createTemporaryFolder("splits");
let database: RunDatabase;
let standby: Standby;
let onStandby: postgres.Sql;
/** The source, and the cell on the standby. */
let [a, b]: CellToMigrate[] = [];

beforeAll(async () => {
  database = await RunDatabase.start(folder.path);
  standby = await startStandby(database.primary, database.owner);
  onStandby = postgres({ ...loginTo(standby), max: 2 });
  a = cellOn("a", database.primary);
  b = cellOn("b", standby);
});
afterAll(async () => {
  await onStandby.end();
  await standby.stop();
  await database.stop();
  folder.remove();
});

function cellOn(name: string, server: PrimaryServer): CellToMigrate {
  return { name, address: { kind: "url", url: urlTo(server) }, schema: "vx", engine: "postgresql", lanes: [] };
}

/** Runs the command, with actions after its steps. Where it would wait, it fails. */
async function split(
  actions: { readonly [Step in SplitStep]?: () => Promise<unknown> } = {},
  changes: Partial<SplitOptions> = {},
): Promise<void> {
  const [source, target] = [a as CellToMigrate, b as CellToMigrate];
  await splitCell({
    source,
    cells: [source, target],
    standby: target.address,
    lanes: LANES,
    newId: randomUUID,
    onStep: async (step) => {
      await actions[step]?.();
    },
    onWait: (reason) => {
      throw new Error(`waits: ${reason}`);
    },
    ...changes,
  });
}

async function ownedBySource(): Promise<number> {
  const rows = await database.owner`SELECT FROM vx.lanes WHERE is_owned`;
  return rows.length;
}

async function expectUnchanged(running: Promise<void>, message: string): Promise<void> {
  await expect(running).rejects.toThrow(message);
  expect(await ownedBySource()).toBe(1_024);
  await expect(onStandby`SELECT pg_is_in_recovery() AS recovers`).resolves.toEqual([{ recovers: true }]);
}

/** A transaction that read the owners and does not end. */
async function readOwners(): Promise<() => Promise<void>> {
  const session = await database.owner.reserve();
  await session`BEGIN`;
  await session`SELECT vx.find_member(512::smallint, 'acct_x', 'usr_x', '')`;
  return async () => {
    await session`COMMIT`;
    session.release();
  };
}

test("the source takes the lanes back if the standby does not replay the release in time", async () => {
  const pause = () => onStandby`SELECT pg_wal_replay_pause()`;
  await expectUnchanged(split({ ready: pause }), "did not replay the change of the owner in time; the source owns");
  await onStandby`SELECT pg_wal_replay_resume()`;
});

test("the source takes the lanes back if a statement that read their owner before does not end in time", async () => {
  let end: (() => Promise<void>) | undefined;
  const begin = async () => {
    end = await readOwners();
  };
  await expectUnchanged(split({ ready: begin }), "did not end in time; the source owns the lanes again");
  await end?.();
});

test("nothing is released while the standby lags, a long transaction runs, or a server does not use the cell", async () => {
  await onStandby`SELECT pg_wal_replay_pause()`;
  await expectUnchanged(split(), "replays changes of the source more than 300 ms late");
  await onStandby`SELECT pg_wal_replay_resume()`;
  const end = await readOwners();
  await expectUnchanged(split(), "uses the table of lanes for long");
  await end();
  await database.owner`SELECT vx.heartbeat('old', '["a"]')`;
  await expectUnchanged(split(), 'the servers old cannot use the cell "b"');
  await database.owner`SELECT vx.heartbeat('old', '["first", "b"]')`;
  await expectUnchanged(split(), 'the cells.yaml of the servers old has no cell "a"');
  await database.owner`DELETE FROM vx.servers`;
});

test("a server that is not the standby of exactly one further cell is refused", async () => {
  const [source, target] = [a as CellToMigrate, b as CellToMigrate];
  const among = { ...source, address: { kind: "url", url: `${urlTo(standby)}` } } as const;
  await expectUnchanged(split({}, { cells: [source] }), "no cell of VX_CELLS is on the standby");
  await expectUnchanged(split({}, { cells: [source, target, { ...target, name: "c" }] }), "among the hosts of the cells b, c");
  await expectUnchanged(split({}, { cells: [among] }), "among the hosts of the cells a");
  await expectUnchanged(split({}, { cells: [source, { ...target, schema: "other" }] }), "must have the schema");
  await expectUnchanged(split({}, { standby: source.address, cells: [cellOn("b", database.primary)], source }), "not a standby");
  await expectUnchanged(split({}, { lanes: Array.from(Array(1_024).keys()) }), "must keep a lane");
});

test("a synchronous standby is refused", async () => {
  const setSynchronous = async (names: string) => {
    await database.owner.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await database.owner`SELECT pg_reload_conf()`;
  };
  await setSynchronous("*");
  await expect
    .poll(async () => {
      const rows = await database.owner`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`;
      return rows.length;
    })
    .toBe(1);
  await expectUnchanged(split(), "commits of the source wait for this standby");
  await setSynchronous("");
});

test("a standby that is promoted manually during a split owns nothing, and the source takes the lanes back", async () => {
  const other = await startStandby(database.primary, database.owner);
  const cell = cellOn("other", other);
  const cells = [a as CellToMigrate, cell];
  const promoted = split({ ready: () => other.promote() }, { standby: cell.address, cells });
  await expectUnchanged(promoted, "the source owns the lanes again");
  const onOther = postgres({ ...loginTo(other), max: 1 });
  const [last] = await onOther<{ id: string }[]>`SELECT id FROM vx.cell_splits ORDER BY changed_at DESC LIMIT 1`;
  await expect(onOther`SELECT vx.claim_lanes(${last?.id ?? ""})`).rejects.toThrow("not in the state");
  expect(await onOther`SELECT name FROM vx.cell_name`).toEqual([{ name: "a" }]);
  await expectUnchanged(split({}, { standby: cell.address, cells }), "the server is not a standby");
  await onOther.end();
  await other.stop();
});

test("nothing is released, or the source takes the lanes back, while another of its standbys does not receive changes", async () => {
  const spare = await startStandby(database.primary, database.owner);
  const onSpare = postgres({ ...loginTo(spare), max: 1 });
  const [receiver] = await onSpare<{ pid: number }[]>`SELECT pid FROM pg_stat_wal_receiver`;
  const pid = receiver?.pid as number;
  const pause = () => Promise.resolve(process.kill(pid, "SIGSTOP"));
  try {
    await expectUnchanged(split({ ready: pause }), "did not receive the release in time; the source owns");
    await expectUnchanged(split(), "of the source receive changes more than 300 ms late");
  } finally {
    process.kill(pid, "SIGCONT");
    await onSpare.end();
    await spare.stop();
  }
});

test("one of two concurrent commands finishes the split, and each lane has one owner", async () => {
  await expect(split({ released: () => split() })).rejects.toThrow("another command may have changed it");
  expect(await ownedBySource()).toBe(512);
  const rows = await onStandby<{ lane: number }[]>`SELECT lane FROM vx.lanes WHERE is_owned ORDER BY lane`;
  expect(rows.map(({ lane }) => lane)).toEqual(LANES);
  const [source] = await database.owner`SELECT state FROM vx.cell_splits ORDER BY changed_at DESC LIMIT 1`;
  expect(source).toEqual({ state: "finished" });
  await expect(split()).rejects.toThrow("the server is not a standby");
});

test("if the source loses its confirmation in a failover, nothing is claimed, and the next command finishes the split", async () => {
  const other = await startStandby(database.primary, database.owner);
  const onOther = postgres({ ...loginTo(other), max: 1 });
  const cell = cellOn("other", other);
  const changes = { standby: cell.address, cells: [a as CellToMigrate, cell], lanes: [0, 1, 2] };
  // As a standby that has the release only would have it. The promoted server does not replay this.
  const lose = () => database.owner`UPDATE vx.cell_splits SET state = 'released' WHERE state = 'confirmed'`;
  await expect(split({ promoted: lose }, changes)).rejects.toThrow("the source has lost its confirmation");
  expect(await onOther`SELECT name FROM vx.cell_name`).toEqual([{ name: "a" }]);
  await split({}, changes);
  expect(await onOther`SELECT name FROM vx.cell_name`).toEqual([{ name: "other" }]);
  expect(await onOther`SELECT lane FROM vx.lanes WHERE is_owned ORDER BY lane`).toEqual(changes.lanes.map((lane) => ({ lane })));
  expect(await database.owner`SELECT FROM vx.lanes WHERE is_owned AND lane < 3`).toHaveLength(0);
  await onOther.end();
  await other.stop();
});
