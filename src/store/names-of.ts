import { laneOfId } from "../domain/lane.ts";
import type { Cells } from "./driver/cells.ts";
import { namedCell } from "./named-cell.ts";

/** The names of accounts, and of keys and operators, by their ids. */
export async function namesOf(
  database: Cells,
  accountIds: readonly string[],
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const arrayOf = (ids: readonly string[]) => JSON.stringify([...new Set(ids)].filter((id) => id !== ""));
  type Row = { id: string; name: string };
  const [accounts, keys] = [arrayOf(accountIds), arrayOf(keyIds)];
  const found = await Promise.all(
    database.all.map(async (_, i) => {
      const rows = await namedCell(database, i).call<Row>("names_of", accounts, keys);
      return rows.filter(({ id }) => database.owns(i, laneOfId(id)));
    }),
  );
  return new Map(found.flat().map(({ id, name }) => [id, name]));
}
