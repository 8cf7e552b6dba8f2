import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { Sql } from "../driver/connect.ts";
import { MigrationError, RELEASE } from "./release.ts";
import { inSavepoint } from "./savepoint.ts";

/** A file of a migration, or a function. */
export type SqlFile = { readonly name: string; readonly sql: string; readonly checksum: string };

export function readFiles(folder: URL): SqlFile[] {
  return namesIn(folder).map((file) => sqlFile(file.replace(/\.sql$/, ""), readFileSync(new URL(file, folder), "utf8")));
}

const SOURCES = new URL("../../", import.meta.url);
/** Files that are not for every database: the tables, and what only a cluster of Citus has. */
const OTHER_FILES = /^database\/(schema|cells\/citus)\//;

/** The functions of all features, in the order of their names. */
export function readFunctions(): SqlFile[] {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" });
  return functionsOf(
    SOURCES,
    files.filter((file) => file.endsWith(".sql") && !OTHER_FILES.test(file)),
  );
}

/** The functions of all files of a folder, in the order of their names. */
export function readFunctionsIn(folder: URL): SqlFile[] {
  return functionsOf(folder, namesIn(folder));
}

function functionsOf(folder: URL, files: readonly string[]): SqlFile[] {
  const functions = files.flatMap((file) => splitFunctions(file, readFileSync(new URL(file, folder), "utf8")));
  return functions.sort((one, other) => (one.name < other.name ? -1 : 1));
}

function namesIn(folder: URL): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort();
}

/** A comment about a file, which an empty line ends. */
const HEADER = /(?:--.*\n)+\n/y;
/** The first semicolon outside of comments, strings and the body ends a function. */
const FUNCTION = /(?:--.*\n)+CREATE OR REPLACE FUNCTION (\w+)\((?:--.*|'[^']*'|\$\$[\s\S]*?\$\$|[^;'$-]|-(?!-))*;\n(?:\n|$)/y;

/** Each function with the comment above it. A file must have nothing else but a header. */
export function splitFunctions(file: string, text: string): SqlFile[] {
  const functions: SqlFile[] = [];
  const first = matchAt(HEADER, text, 0);
  for (let at = first?.[0].length ?? 0; at < text.length; ) {
    const found = first && matchAt(FUNCTION, text, at);
    const line = text.slice(0, at).split("\n").length;
    if (!found) throw new MigrationError(`line ${line} of ${file} does not begin a function with a comment on it`);
    const [sql, name = ""] = found;
    functions.push(sqlFile(name, sql.trimEnd().concat("\n")));
    at += sql.length;
  }
  return functions;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

export function sqlFile(name: string, sql: string): SqlFile {
  return { name, sql, checksum: hash("sha256", sql, "hex") };
}

/** The checksums of the files that were applied. */
export async function readChecksums(sql: Sql, schema: string, table: "migrations" | "functions"): Promise<Map<string, string>> {
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

/** The oldest release whose servers can work with this schema. */
const OLDEST_RELEASE = "0.1.0";

/** Creates the functions whose text changed and drops those without a file. Returns the number of both. */
export async function applyFunctions(transaction: Sql, schema: string, files: readonly SqlFile[]): Promise<number> {
  const known = await readChecksums(transaction, schema, "functions");
  const changed = changedNames(known, files);
  if (changed.length === 0) return 0;
  // Functions call each other, and the order of their names is not the order of their dependencies.
  await transaction`SET LOCAL check_function_bodies = off`;
  for (const { name, sql: text, checksum } of files) {
    if (known.get(name) === checksum) continue;
    if (known.has(name)) await replaceFunction(transaction, schema, name, text);
    else await transaction.unsafe(text);
    await transaction`
      INSERT INTO functions AS f VALUES (${name}, ${checksum}, clock_timestamp())
      ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at`;
  }
  const names = new Set(files.map(({ name }) => name));
  for (const name of known.keys()) if (!names.has(name)) await dropFunction(transaction, schema, name);
  await dropOverloads(transaction, schema, files);
  await grantEntryPoints(transaction, schema);
  await transaction`
    INSERT INTO releases AS r VALUES (${RELEASE}, ${OLDEST_RELEASE}, clock_timestamp())
    ON CONFLICT (release) DO UPDATE
      SET oldest_release = excluded.oldest_release, applied_at = excluded.applied_at`;
  return changed.length;
}

/** The error of CREATE OR REPLACE for a function whose result, or the name of a parameter, is another one. */
const INVALID_FUNCTION_DEFINITION = "42P13";

/** Drops the old form only if it cannot be replaced: sessions may be running it, and find a replaced function by its id. */
async function replaceFunction(transaction: Sql, schema: string, name: string, text: string): Promise<void> {
  try {
    await inSavepoint(transaction, (statements) => statements.unsafe(text));
  } catch (error) {
    if ((error as { code?: string }).code !== INVALID_FUNCTION_DEFINITION) throw error;
    await dropFunction(transaction, schema, name);
    await transaction.unsafe(text);
  }
}

async function dropFunction(transaction: Sql, schema: string, name: string): Promise<void> {
  const rows = await transaction<{ signature: string }[]>`
    SELECT oid::regprocedure::text AS signature FROM pg_proc
    WHERE pronamespace = ${schema}::regnamespace AND proname = ${name}`;
  for (const { signature } of rows) await transaction.unsafe(`DROP FUNCTION ${signature}`);
  await transaction`DELETE FROM functions WHERE name = ${name}`;
}

/** A text with other parameters creates a second function of the same name: only the one of the file stays. */
async function dropOverloads(transaction: Sql, schema: string, files: readonly SqlFile[]): Promise<void> {
  const rows = await transaction<{ name: string }[]>`
    SELECT proname AS name FROM pg_proc WHERE pronamespace = ${schema}::regnamespace
    GROUP BY proname HAVING count(*) > 1`;
  const overloaded = new Set(rows.map(({ name }) => name));
  for (const { name, sql: text } of files.filter((file) => overloaded.has(file.name))) {
    await transaction.unsafe(text);
    const others = await transaction<{ signature: string }[]>`
      SELECT oid::regprocedure::text AS signature FROM pg_proc
      WHERE pronamespace = ${schema}::regnamespace AND proname = ${name}
        AND xmin <> pg_current_xact_id()::xid`;
    for (const { signature } of others) await transaction.unsafe(`DROP FUNCTION ${signature}`);
  }
}

/** Grants the server the SECURITY DEFINER functions; the others are their helpers. */
async function grantEntryPoints(transaction: Sql, schema: string): Promise<void> {
  await transaction`REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ${transaction(schema)} FROM PUBLIC, vx_app`;
  const rows = await transaction<{ signature: string }[]>`
    SELECT oid::regprocedure::text AS signature FROM pg_proc
    WHERE pronamespace = ${schema}::regnamespace AND prosecdef`;
  const signatures = rows.map(({ signature }) => signature);
  await transaction.unsafe(`GRANT EXECUTE ON FUNCTION ${signatures.join(", ")} TO vx_app`);
}
