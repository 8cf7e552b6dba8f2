import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CellToMigrate } from "../../src/database/cells/migrate-cell.ts";
import { abortSplit, SPLIT_STEPS, type SplitStep, splitCell } from "../../src/database/cells/split-cell.ts";
import { loginTo, urlTo } from "../support/embedded.ts";
import { type PrimaryServer, type Standby, startStandby } from "../support/standby.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { RunDatabase } from "../torture/database.ts";

const LANES = [0, 1, 1_023];
const LANES_OF_SOURCE = 1_024 - LANES.length;

let cleanup: AsyncDisposableStack;
let database: RunDatabase;
/** Replaces the source in a failover. Commits of the source wait for it. */
let spare: Standby;
let target: Standby;

beforeEach(async () => {
  cleanup = new AsyncDisposableStack();
  const folder = createTemporaryFolder("failover-split");
  cleanup.defer(folder.remove);
  database = await RunDatabase.start(folder.path);
  cleanup.defer(() => database.stop());
  spare = await attach(database.primary, "spare");
  target = await attach(database.primary, "target");
  await database.owner`ALTER SYSTEM SET synchronous_standby_names = 'spare'`;
  await database.owner`SELECT pg_reload_conf()`;
  await expect.poll(() => countReceivers("sync")).toBe(1);
});
afterEach(() => cleanup.disposeAsync());

async function attach(primary: PrimaryServer, name: string): Promise<Standby> {
  const standby = await startStandby(primary, database.owner, addressOf(primary, name));
  cleanup.defer(standby.stop);
  return standby;
}

const addressOf = (primary: PrimaryServer, name: string) => `host=${primary.socketDir} application_name=${name}`;

async function countReceivers(syncState: string): Promise<number> {
  const rows = await database.owner`SELECT FROM pg_stat_replication WHERE sync_state = ${syncState}`;
  return rows.length;
}

function sqlOn(server: PrimaryServer): postgres.Sql {
  const sql = postgres({ ...loginTo(server), max: 1 });
  cleanup.defer(() => sql.end());
  return sql;
}

/** The source has two hosts, as after a change of its database_url for a failover. */
function source(): CellToMigrate {
  const url = urlTo(database.primary).replace("host=", `host=${encodeURIComponent(spare.socketDir)},`);
  return { name: "a", address: { kind: "url", url }, schema: "vx", engine: "postgresql", lanes: [] };
}

/** Runs the command, with an action after one of its steps. */
async function split(step?: SplitStep, action?: () => Promise<unknown>, to = target): Promise<void> {
  const url = urlTo(to);
  await splitCell({
    source: source(),
    cells: [source(), { name: "b", address: { kind: "url", url }, schema: "vx", engine: "postgresql", lanes: [] }],
    standby: { kind: "url", url },
    lanes: LANES,
    newId: randomUUID,
    onStep: async (done) => {
      if (done === step) await action?.();
    },
    onWait: () => undefined,
  });
}

/** The source dies, and its synchronous standby replaces it. */
async function failOver(): Promise<void> {
  database.kill();
  await spare.promote();
  database.moveTo(spare);
}

async function follow(standby: Standby, primary: PrimaryServer): Promise<void> {
  const sql = sqlOn(standby);
  const address = `${addressOf(primary, "target")} user=postgres password=${primary.passwordOf("postgres")}`;
  await sql.unsafe(`ALTER SYSTEM SET primary_conninfo = '${address}'`);
  await sql`SELECT pg_reload_conf()`;
  await expect.poll(() => countReceivers("async")).toBe(1);
}

async function commitAlone(standby: Standby): Promise<void> {
  const sql = sqlOn(standby);
  await sql`ALTER SYSTEM RESET synchronous_standby_names`;
  await sql`SELECT pg_reload_conf()`;
  await expect.poll(async () => await sql`SHOW synchronous_standby_names`).toMatchObject([{ synchronous_standby_names: "" }]);
}

async function ownedBy(server: PrimaryServer): Promise<number[]> {
  const rows = await sqlOn(server)<{ lane: number }[]>`SELECT lane FROM vx.lanes WHERE is_owned ORDER BY lane`;
  return rows.map(({ lane }) => lane);
}

async function expectFinished(to = target): Promise<void> {
  expect(await ownedBy(to)).toEqual(LANES);
  const rest = await ownedBy(spare);
  expect(rest).toHaveLength(LANES_OF_SOURCE);
  expect(rest.filter((lane) => LANES.includes(lane))).toEqual([]);
}

const die = () => Promise.reject(new Error("killed"));

test.for(SPLIT_STEPS.slice(0, -1))(
  "if the source fails over after the step %s, the next command finishes the split",
  async (step) => {
    const isPromoted = step === "promoted" || step === "claimed";
    await expect(split(step, failOver)).rejects.toThrow();
    if (!isPromoted) await follow(target, spare);
    await split();
    await expectFinished();
  },
);

test("after a failover, lanes are not handed to a standby that does not follow the new source", async () => {
  await expect(split("released", die)).rejects.toThrow("killed");
  await failOver();
  await expect(split()).rejects.toThrow("the source owns the lanes again");
  expect(await ownedBy(spare)).toHaveLength(1_024);
  await follow(target, spare);
  await split();
  await expectFinished();
});

test("a split whose standby was lost after the release can be undone, and nothing confirms it later", async () => {
  const paused = split("released", async () => {
    await target.stop();
    expect(await abortSplit(source())).toEqual(LANES);
  });
  await expect(paused).rejects.toThrow();
  expect(await ownedBy(database.primary)).toHaveLength(1_024);
  await expect(abortSplit(source())).rejects.toThrow('the cell "a" has no unfinished split');
  const other = await attach(database.primary, "target");
  await commitAlone(other);
  await split(undefined, undefined, other);
  expect(await ownedBy(other)).toEqual(LANES);
});

test("a split that only began can be undone", async () => {
  await expect(split("begun", die)).rejects.toThrow("killed");
  expect(await abortSplit(source())).toEqual(LANES);
  expect(await ownedBy(database.primary)).toHaveLength(1_024);
});

test("a confirmed split cannot be undone, and another standby can replace a lost one", async () => {
  await expect(split("confirmed", die)).rejects.toThrow("killed");
  await target.stop();
  await expect(abortSplit(source())).rejects.toThrow('the cell "b" may own the lanes');
  const other = await attach(database.primary, "target");
  // The copy has the setting of the source.
  await expect(split(undefined, undefined, other)).rejects.toThrow("has synchronous_standby_names");
  await commitAlone(other);
  await split(undefined, undefined, other);
  expect(await ownedBy(other)).toEqual(LANES);
  expect(await ownedBy(database.primary)).toHaveLength(LANES_OF_SOURCE);
});

test("after a failover of the source a released split cannot be undone, and another standby can replace a lost one", async () => {
  await expect(split("released", die)).rejects.toThrow("killed");
  await failOver();
  await target.stop();
  await expect(abortSplit(source())).rejects.toThrow("replaced in a failover");
  expect(await ownedBy(spare)).toHaveLength(LANES_OF_SOURCE);
  const other = await attach(spare, "target");
  await split(undefined, undefined, other);
  await expectFinished(other);
});
