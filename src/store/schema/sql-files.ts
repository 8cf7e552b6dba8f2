import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { Sql } from "../driver/connect.ts";

export type SqlFile = { readonly name: string; readonly sql: string; readonly checksum: string };

export function readFiles(folder: URL): SqlFile[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort();
  return files.map((file) => {
    const sql = readFileSync(new URL(file, folder), "utf8");
    return { name: file.replace(/\.sql$/, ""), sql, checksum: hash("sha256", sql, "hex") };
  });
}

/** The checksums of the files that were applied. */
export async function readChecksums(
  sql: Sql,
  schema: string,
  table: "migrations" | "functions",
): Promise<Map<string, string>> {
  const rows = await sql.unsafe<{ name: string; checksum: string }[]>(
    `SELECT name, checksum FROM ${schema}.${table} ORDER BY name`,
  );
  return new Map(rows.map(({ name, checksum }) => [name, checksum]));
}

/** The names of files whose text differs from the applied one, and of applied files that no longer exist. */
export function changedNames(known: ReadonlyMap<string, string>, files: readonly SqlFile[]): string[] {
  const names = new Set(files.map(({ name }) => name));
  const changed = files.filter(({ name, checksum }) => known.get(name) !== checksum);
  return [...changed.map(({ name }) => name), ...[...known.keys()].filter((name) => !names.has(name))];
}
