// In every test, a server sends null to a SQL function, and gets null from it, only where the SQL says so, and a text for which the
// SQL lists values is one of them: the types in gen/sql/calls.ts promise it.
import { inject } from "vitest";
import type { Parameter } from "../../src/database/driver/connection.ts";
import { Database } from "../../src/database/driver/database.ts";
import type { SqlValue } from "../../tools/sql/catalogue.ts";

const functions = new Map(inject("sqlFunctions").map((one) => [one.name, one]));
const { call } = Database.prototype;
/** Without isolation, this file runs once for each file of tests. */
const CHECKED = Symbol.for("vx.checked");

if (!(CHECKED in call)) {
  Database.prototype.call = async function <Row>(this: Database, name: string, ...parameters: Parameter[]): Promise<Row[]> {
    const { parameters: declared = [], result } = functions.get(name) ?? {};
    for (const [i, parameter] of declared.entries()) check(name, parameter, parameters[i]);
    const rows = await call.call<Database, [string, ...Parameter[]], Promise<unknown[]>>(this, name, ...parameters);
    const columns = result?.kind === "rows" ? result.columns : result?.kind === "value" ? [result.value] : [];
    for (const row of rows as Record<string, unknown>[]) for (const column of columns) check(name, column, row[column.name]);
    return rows as Row[];
  };
  Object.assign(Database.prototype.call, { [CHECKED]: true });
}

function check(name: string, { name: value, isNullable, labels }: SqlValue, given: unknown): void {
  if (given === null ? isNullable : !labels || labels.includes(String(given))) return;
  throw new Error(`${value} of vx.${name} is ${given}, which its SQL does not declare: see tools/sql/catalogue.ts`);
}
