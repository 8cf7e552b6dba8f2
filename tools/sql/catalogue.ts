// What the catalogue of a migrated database says of the functions that a server may call, and what their SQL adds to it.
import type postgres from "postgres";
import type { SqlFile } from "../../src/database/schema/sql-files.ts";

/** A parameter, or a column of a result. */
export type SqlValue = {
  readonly name: string;
  /** In SQL, without a domain around it. */
  readonly type: string;
  readonly isNullable: boolean;
  /** The only values: the labels of an enumeration, or those that the SQL lists. */
  readonly labels: readonly string[] | undefined;
};

export type SqlParameter = SqlValue & { readonly default: string | undefined };

export type SqlFunction = {
  readonly name: string;
  readonly parameters: readonly SqlParameter[];
  /** Whether its first parameter is a caller, whose right it proves. */
  readonly proves: boolean;
  readonly isSet: boolean;
  /** The type of a row, the only value, or nothing. */
  readonly result:
    | { readonly kind: "rows"; readonly type: string | undefined; readonly columns: readonly SqlValue[] }
    | { readonly kind: "value"; readonly value: SqlValue }
    | { readonly kind: "void" };
};

/** A composite type, with its fields in order. */
export type SqlType = { readonly name: string; readonly columns: readonly SqlValue[] };

type ValueRow = { name: string; type: string; labels: string[] | null };
type TypeRow = { name: string; comment: string | null; columns: (ValueRow & { isNotNull: boolean })[] };
type ArgumentRow = ValueRow & { isColumn: boolean; default: string | null };
type FunctionRow = {
  name: string;
  isSet: boolean;
  proves: boolean;
  result: string;
  labels: string[] | null;
  isComposite: boolean;
  arguments: ArgumentRow[];
};

/** Of the type `t`: its name without a domain around it, and its labels. */
const TYPE = `format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, NULL)`;
const LABELS = `(SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)`;

const TYPES = `
  SELECT c.relname AS name, coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type')) AS comment, (
    SELECT json_agg(json_build_object('name', a.attname, 'type', ${TYPE}, 'labels', ${LABELS}, 'isNotNull', a.attnotnull)
      ORDER BY a.attnum)
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  ) AS columns
  FROM pg_class c
  WHERE c.relnamespace = current_schema::regnamespace AND c.relkind IN ('c', 'r', 'p', 'v') AND NOT c.relispartition
  ORDER BY c.oid`;

const FUNCTIONS = `
  SELECT p.proname AS name, p.proretset AS "isSet", p.prosrc ~ '\\mprove\\(p_caller\\M' AS proves,
    CASE WHEN t.typtype = 'c' THEN t.typname ELSE ${TYPE} END AS result, ${LABELS} AS labels, t.typtype = 'c' AS "isComposite",
    (SELECT coalesce(json_agg(json_build_object('name', a.name, 'type', ${TYPE}, 'labels', ${LABELS},
        'isColumn', a.mode IN ('o', 't'), 'default', pg_get_function_arg_default(p.oid, a.n::integer)) ORDER BY a.n), '[]')
      FROM unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes)
        WITH ORDINALITY AS a (name, type, mode, n)
      JOIN pg_type t ON t.oid = a.type) AS arguments
  FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype
  WHERE p.pronamespace = current_schema::regnamespace AND has_function_privilege('vx_app', p.oid, 'EXECUTE')
  ORDER BY p.proname`;

/** Reads the schema that the search path of the session begins with. */
export async function readCatalogue(sql: Pick<postgres.Sql, "unsafe">, files: readonly SqlFile[]) {
  const types: SqlType[] = [];
  for (const row of await sql.unsafe<TypeRow[]>(TYPES)) types.push(typeOf(row, types));
  const texts = new Map(files.map(({ name, sql: text }) => [name, text]));
  const rows = await sql.unsafe<FunctionRow[]>(FUNCTIONS);
  const functions = rows.map((row) => {
    const comment = (texts.get(row.name) ?? "").replace(/^(?!-- ).*$/gm, "").replace(/^-- /gm, "");
    const names = [row.name, ...row.arguments.map(({ name }) => name)];
    return functionOf(row, types, rulesOf(row.name, comment, names, types));
  });
  return { types, functions };
}

/** A table says by NOT NULL which of its columns can be null. */
function typeOf({ name, comment, columns }: TypeRow, earlier: readonly SqlType[]): SqlType {
  const names = columns.map((column) => column.name);
  const rules = rulesOf(name, comment ?? "", names, earlier);
  const isTable = columns.some(({ isNotNull }) => isNotNull);
  const withNulls = (value: SqlValue, isNullable: boolean) => (isTable ? { ...value, isNullable } : value);
  return { name, columns: columns.map((column) => withNulls(sqlValue(column, rules.get(column.name)), !column.isNotNull)) };
}

type Rule = { readonly isNullable: boolean; readonly labels: readonly string[] };

function sqlValue({ name, type, labels }: ValueRow, rule: Rule | undefined): SqlValue {
  const listed = rule?.labels.length ? rule.labels : undefined;
  return { name, type, isNullable: rule?.isNullable ?? false, labels: listed ?? labels ?? undefined };
}

/**
 * What lines of the comment above a function, or of the comment on a type or a view, say: `null: a, b` names what can be null,
 * `a: x | y` the only values of a text. `null: some_type.*` says of columns of these names what is true for those of the type.
 */
function rulesOf(owner: string, comment: string, names: readonly string[], types: readonly SqlType[]): ReadonlyMap<string, Rule> {
  const rules = new Map<string, Rule>();
  const add = (name: string, rule: Partial<Rule>) => {
    if (!names.includes(name)) throw new Error(`the comment on ${owner} is about ${name}, which it does not have`);
    rules.set(name, { isNullable: false, labels: [], ...rules.get(name), ...rule });
  };
  const addNull = (name: string) => {
    if (!name.endsWith(".*")) return add(name, { isNullable: true });
    for (const { name: column, isNullable, labels = [] } of typeNamed(types, name.slice(0, -2)).columns)
      if (names.includes(column)) add(column, { isNullable, labels });
  };
  for (const [, values = ""] of comment.matchAll(/^null: (.+)$/gm)) values.split(", ").forEach(addNull);
  for (const [, name = "", values = ""] of comment.matchAll(/^(\w+): ([\w"]+(?: \| \w+)+)$/gm))
    add(name, { labels: values.split(" | ").map((label) => (label === '""' ? "" : label)) });
  return rules;
}

function typeNamed(types: readonly SqlType[], name: string): SqlType {
  const type = types.find((one) => one.name === name);
  if (!type) throw new Error(`there is no type ${name}`);
  return type;
}

function parameterOf(argument: ArgumentRow, rule: Rule | undefined): SqlParameter {
  const value = sqlValue(argument, rule);
  const isNullable = value.isNullable || argument.default?.startsWith("NULL") === true;
  return { ...value, isNullable, default: argument.default ?? undefined };
}

function functionOf(row: FunctionRow, types: readonly SqlType[], rules: ReadonlyMap<string, Rule>): SqlFunction {
  const { name, isSet, proves } = row;
  const parameters = row.arguments
    .filter(({ isColumn }) => !isColumn)
    .map((argument) => parameterOf(argument, rules.get(argument.name)));
  return { name, parameters, proves, isSet, result: resultOf() };

  function resultOf(): SqlFunction["result"] {
    const columns = row.arguments.filter(({ isColumn }) => isColumn);
    if (columns.length > 0)
      return { kind: "rows", type: undefined, columns: columns.map((column) => sqlValue(column, rules.get(column.name))) };
    if (row.isComposite) return { kind: "rows", type: row.result, columns: typeNamed(types, row.result).columns };
    if (row.result === "void") return { kind: "void" };
    return { kind: "value", value: sqlValue({ name, type: row.result, labels: row.labels }, rules.get(name)) };
  }
}
