// Writes gen/sql: a typed call of each SQL function that a server may execute, and the fields of the types that it sends; and the
// personal columns of docs/privacy.md.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { connect, type Sql } from "../src/database/driver/connect.ts";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres.ts";
import { migrate } from "../src/database/schema/migrate.ts";
import { readFunctions } from "../src/database/schema/sql-files.ts";
import { readCatalogue, type SqlFunction, type SqlParameter, type SqlType, type SqlValue } from "./sql/catalogue.ts";
import { personalTable, textColumns } from "./sql/personal-columns.ts";

const FOLDER = new URL("../gen/sql/", import.meta.url);

/** As the driver parses a column. */
const RESULTS: Readonly<Record<string, string>> = {
  text: "string",
  numeric: "string",
  smallint: "number",
  integer: "number",
  "double precision": "number",
  bigint: "bigint",
  boolean: "boolean",
  "timestamp with time zone": "Date",
  bytea: "Buffer",
  json: "unknown",
};

/** As the driver sends a parameter. */
const PARAMETERS: Readonly<Record<string, string>> = { ...RESULTS, bigint: "bigint | number", bytea: "Uint8Array" };

const WRITTEN = `// Written by tools/write-sql-calls.ts from the catalogue of a migrated database: npm run generate:sql. The SQL names what can
// be null: see tools/sql/catalogue.ts.
`;
const IMPORTS = `import { LANE_COUNT } from "../../src/domain/lane.ts";
import { type Action, type ChangedCells, change } from "../../src/database/action.ts";
import type { FunctionCaller } from "../../src/database/driver/cells.ts";
`;

const { types, functions, columns } = await withDatabase(async (sql) => ({
  ...(await readCatalogue(sql, readFunctions())),
  columns: await textColumns(sql),
}));
const PRIVACY = new URL("../docs/privacy.md", import.meta.url);
const PERSONAL = /(<!-- personal columns, by npm run generate -->\n)(?:\n|\|.*\n)*/;
const privacy = readFileSync(PRIVACY, "utf8");
writeFileSync(
  PRIVACY,
  privacy.replace(PERSONAL, (_, comment: string) => `${comment}\n${personalTable(columns)}\n\n`),
);
const returned = types.filter(({ name }) => functions.some(({ result }) => result.kind === "rows" && result.type === name));
const sent = types.filter(({ name }) =>
  functions.some(({ parameters }) => parameters.some(({ type }) => elementOf(type) === name)),
);
mkdirSync(FOLDER, { recursive: true });
writeFileSync(new URL("fields.ts", FOLDER), [WRITTEN, ...sent.map(fieldsOf)].join("\n"));
writeFileSync(
  new URL("calls.ts", FOLDER),
  [WRITTEN + IMPORTS, ...returned.map(({ name, columns }) => rowType(pascal(name), columns)), ...functions.map(callOf)].join(
    "\n",
  ),
);

/** The fields of a type that is sent in its text form, where they are positional. */
function fieldsOf({ name, columns }: SqlType): string {
  return `export const ${camel(name)} = [\n${columns.map((column) => `  "${column.name}",\n`).join("")}] as const;\n`;
}

function rowType(name: string, columns: readonly SqlValue[]): string {
  return `export type ${name} = {\n${columns.map((column) => `  ${column.name}: ${resultType(column)};\n`).join("")}};\n`;
}

function callOf(one: SqlFunction): string {
  const { name, result, isSet, proves } = one;
  const given = proves ? one.parameters.slice(1) : one.parameters;
  const rowName = result.kind === "rows" ? pascal(result.type ?? `${name}_row`) : "";
  const row = result.kind === "value" ? `{ ${name}: ${resultType(result.value)} }` : rowName;
  const lane = given.some((parameter) => parameter.name === "p_lane") ? "p.lane" : "LANE_COUNT";
  const first = proves ? ["cells", lane, "action"] : [];
  const values = [...first, `"${name}"`, ...given.map(argumentOf)].join(", ");
  const call = `await ${proves ? "change" : "cell.call"}${row === "" ? "" : `<${row}>`}(${values})`;
  const receivers = proves ? "cells: ChangedCells, action: Action" : "cell: FunctionCaller";
  const signature = [receivers, ...(given.length > 0 ? [`p: {\n${given.map(fieldOf).join("")}}`] : [])].join(", ");
  const [type, body] = resultOf();
  const declared = result.kind === "rows" && result.type === undefined ? `${rowType(rowName, result.columns)}\n` : "";
  return `${declared}export async function ${camel(name)}(${signature}): Promise<${type}> {\n  ${body};\n}\n`;

  function resultOf(): [type: string, body: string] {
    if (result.kind === "void") return ["void", call];
    if (result.kind === "rows")
      return isSet ? [`${rowName}[]`, `return ${call}`] : [rowName, `return (${call})[0] as ${rowName}`];
    const value = resultType(result.value);
    if (isSet) return [`${value.includes("|") ? `(${value})` : value}[]`, `return (${call}).map((row) => row.${name})`];
    return [value, `return (${call})[0]!.${name}`];
  }
}

function fieldOf(parameter: SqlParameter): string {
  const type = typeIn(PARAMETERS, parameter);
  const isOptional = parameter.isNullable || parameter.default !== undefined;
  const optional = `?: ${type}${parameter.isNullable ? " | null" : ""} | undefined`;
  return `  ${nameOf(parameter)}${isOptional ? optional : `: ${type}`};\n`;
}

/** A parameter that is left out has its default, or is null. */
function argumentOf(parameter: SqlParameter): string {
  const value = `p.${nameOf(parameter)}`;
  if (parameter.default !== undefined) return `${value} ?? ${literalOf(parameter.default)}`;
  return parameter.isNullable ? `${value} ?? null` : value;
}

function nameOf({ name }: SqlParameter): string {
  return camel(name.replace(/^p_/, ""));
}

/** Of a default such as NULL::text, false, or '{}'::admit_item[]. */
function literalOf(sql: string): string {
  const [literal = ""] = sql.split("::");
  return literal.startsWith("'") ? `"${literal.slice(1, -1)}"` : literal.toLowerCase();
}

function resultType(value: SqlValue): string {
  const type = typeIn(RESULTS, value);
  return value.isNullable ? `${type} | null` : type;
}

/** An array or a row is a text to the driver. */
function typeIn(known: typeof RESULTS, { name, type, labels }: SqlValue): string {
  if (labels) return labels.map((label) => `"${label}"`).join(" | ");
  const isText = type.endsWith("[]") || types.some((one) => one.name === type);
  const found = isText ? "string" : known[type];
  if (!found) throw new Error(`${name} has the type ${type}, which this program does not know`);
  return found;
}

function elementOf(type: string): string {
  return type.replace(/\[\]$/, "");
}

function camel(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function pascal(name: string): string {
  return camel(`_${name}`);
}

/** A new database with the schema of this release. */
async function withDatabase<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
  // Every user may enter it, because PostgreSQL runs as another user than root.
  const dataDir = mkdtempSync(join(tmpdir(), "vx-catalogue-"));
  chmodSync(dataDir, 0o755);
  const embedded = await startEmbeddedPostgres({ dataDir, print: () => undefined });
  try {
    const address = {
      kind: "socket" as const,
      folder: embedded.socketDir,
      user: "postgres",
      password: embedded.passwordOf("postgres"),
      database: "postgres",
    };
    await migrate(address);
    const sql = await connect(address, { statementTimeoutMs: 60_000, name: "vx catalogue" });
    try {
      await sql`SET search_path = vx`;
      return await work(sql);
    } finally {
      await sql.end();
    }
  } finally {
    await embedded.stop();
    rmSync(dirname(embedded.clusterDir), { recursive: true, force: true });
    rmSync(dataDir, { recursive: true, force: true });
  }
}
