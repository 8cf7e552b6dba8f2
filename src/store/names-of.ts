import type { Database } from "./driver/database.ts";

/** The names of accounts and keys by their ids. */
export async function namesOf(
  database: Database,
  accountIds: readonly string[],
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const arrayOf = (ids: readonly string[]) => JSON.stringify([...new Set(ids)].filter((id) => id !== ""));
  const rows = await database.call<{ id: string; name: string }>(
    "names_of",
    arrayOf(accountIds),
    arrayOf(keyIds),
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}
