import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { words } from "./words.ts";

export type CellDatabase = TestDatabase & { readonly name: string; readonly lanes: string };

/** Two cells, a with the lower and b with the upper half of the lanes, in databases of their own. */
export async function createTwoCells(): Promise<readonly [CellDatabase, CellDatabase]> {
  const [a, b] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  await a.owner`UPDATE vx.lanes SET is_owned = lane < 512`;
  await b.owner`UPDATE vx.lanes SET is_owned = lane >= 512`;
  return [
    { ...a, name: "a", lanes: "0-511" },
    { ...b, name: "b", lanes: "512-1023" },
  ];
}

/** Writes cells.yaml into the folder and returns its path. */
export function writeCellsFile(folder: string, cells: readonly Pick<CellDatabase, "name" | "url" | "lanes">[]): string {
  const path = join(folder, "cells.yaml");
  const entries = cells.map(({ name, url, lanes }) => `  - name: ${name}\n    database_url: "${url}"\n    lanes: "${lanes}"\n`);
  writeFileSync(path, `cells:\n${entries.join("")}`);
  return path;
}

const TABLES = words(`
    accounts account_profiles keys key_minutes key_creations holds answers ledger
  `);
const MORE_TABLES = words(`
    movement_keys usage_quarters end_users usage_users usage_user_counts operator_events topups account_prices
    entry_adjustments auto_topups grants webhooks event_ends events deliveries webhook_queues woken_queues
  `);

/** Moves a lane as an operator would: it has no owner while its rows are copied. */
export async function moveLane(lane: number, from: CellDatabase, to: CellDatabase): Promise<void> {
  const [gone] = await from.owner<{ epoch: string }[]>`
    UPDATE vx.lanes SET is_owned = false, epoch = epoch + 1 WHERE lane = ${lane} RETURNING epoch`;
  for (const table of [...TABLES, ...MORE_TABLES]) {
    const [rows] = await from.owner.unsafe<{ list: string; columns: string }[]>(
      `SELECT coalesce(json_agg(t), '[]')::text AS list, (SELECT string_agg(attname, ', ') FROM pg_attribute
        WHERE attrelid = 'vx.${table}'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns
      FROM vx.${table} t WHERE lane = ${lane}`,
    );
    const copy = `INSERT INTO vx.${table} (${rows?.columns}) SELECT ${rows?.columns}
      FROM json_populate_recordset(NULL::vx.${table}, $1::text::json)`;
    await to.owner.unsafe(copy, [rows?.list ?? "[]"]);
  }
  const [chain] = await from.owner<{ list: string }[]>`
    SELECT to_json(c)::text AS list FROM vx.operator_chains c WHERE lane = ${lane}`;
  await to.owner`
    UPDATE vx.operator_chains c SET last_seq = n.last_seq, last_hash = n.last_hash, last_at = n.last_at
    FROM json_populate_record(NULL::vx.operator_chains, ${chain?.list ?? "{}"}::text::json) n WHERE c.lane = n.lane`;
  await to.owner`UPDATE vx.lanes SET is_owned = true, epoch = ${gone?.epoch ?? 0}::bigint + 1 WHERE lane = ${lane}`;
}
