import { mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { vx } from "../../cli/support.ts";
import { type CellDatabase, createTwoCells, writeCellsFile } from "../../support/cells.ts";
import { createPayer } from "../../support/payer.ts";
import { openDatabase } from "../../support/store.ts";
import { createTemporaryFolder } from "../../support/temporary-folder.ts";
import { createPastPartitions, moveToPast, thisMonth } from "./past-months.ts";

const AWAY = { name: "away", url: "postgres://owner:secret@127.0.0.1:1/vx", lanes: "" };

const folder = createTemporaryFolder("archive-cells");
let cells: readonly [CellDatabase, CellDatabase];
let file: string;

beforeAll(async () => {
  cells = await createTwoCells();
  for (const [i, { owner, address }] of cells.entries()) {
    const pool = openDatabase(address);
    const payer = await createPayer(pool, 1_000n, i * 512);
    await pool.close();
    await createPastPartitions(owner, 1);
    await moveToPast(owner, [{ accountId: payer.accountId, seq: 1, createdIn: thisMonth - 1 }]);
  }
  file = writeCellsFile(folder.path, cells);
});
afterAll(async () => {
  await Promise.all(cells.map((cell) => cell.drop()));
  folder.remove();
});

test("each cell is archived to a folder of its own, and audited with it", async () => {
  const archives = join(folder.path, "archives");
  mkdirSync(archives);
  const env = { VX_CELLS: file };
  const { code, stdout, stderr } = await vx(["archive", "--keep", "1", "--json", archives], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const archived = ["a", "b"].map((cell) => ({ cell, entries: 1 }));
  expect(JSON.parse(stdout)).toMatchObject({ archives: archived });
  for (const { name } of cells) expect(readdirSync(join(archives, name))).toHaveLength(2);

  const audit = () => vx(["audit", "--archive", archives, "--json"], env);
  const good = await audit();
  expect(good).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(good.stdout)).toMatchObject({
    archives: { files: 2, entries: 2 },
    audit: { consistent: true, accounts: 2, findings: [] },
  });
  renameSync(join(archives, "b"), join(archives, "elsewhere"));
  const missing = await audit();
  expect(missing.code).toBe(1);
  expect(JSON.parse(missing.stdout).audit.findings).toMatchObject([{ rule: "archive_matches_ledger" }]);
});

/** Archives to the folder what a file with these cells names. */
async function archive(name: string, listed: readonly object[], to = folder.path) {
  const path = join(folder.path, `${name}.yaml`);
  writeFileSync(path, JSON.stringify({ cells: listed }));
  return await vx(["archive", "--keep", "1", "--json", to], { VX_CELLS: path });
}

test("a cell that cannot be reached is named, and nothing is left to archive in the others", async () => {
  const rest = join(folder.path, "rest");
  mkdirSync(rest);
  const listed = [AWAY, ...cells].map(({ name, url }) => ({ name, database_url: url }));
  const { code, stdout, stderr } = await archive("with-away", listed, rest);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^vx: away: the database cannot be used: /);
  expect(stderr).not.toContain("secret");
  expect(JSON.parse(stdout)).toEqual({ archives: [] });
});

test("a cell on Citus is not archived", async () => {
  const { code, stderr } = await archive("on-citus", [{ name: "c", engine: "citus", database_url: cells[0].url }]);
  expect([code, stderr]).toEqual([1, "vx: c: the cell is on Citus, where entries cannot be archived\n"]);
});

test("a database that has another cell's name is not archived", async () => {
  const [{ owner, url }] = cells;
  await owner`INSERT INTO vx.cell_name (name) VALUES ('a')`;
  const { code, stderr } = await archive("renamed", [{ name: "z", database_url: url }]);
  expect([code, stderr]).toEqual([1, 'vx: z: the database is the cell "a"\n']);
});
