import type postgres from "postgres";

/** A column with texts, and the mark in its comment. */
export type TextColumn = { readonly column: string; readonly mark: string | null };

/** The columns of tables that can have texts other than ids. */
export async function textColumns(sql: Pick<postgres.Sql, "unsafe">): Promise<TextColumn[]> {
  return await sql.unsafe<TextColumn[]>(`
    SELECT c.relname || '.' || a.attname AS column, col_description(c.oid, a.attnum) AS mark
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
    WHERE c.relnamespace = 'vx'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND coalesce(e.typname, t.typname) IN ('text', 'json', 'jsonb', 'cidr', 'inet')
      AND (a.attname !~ '^(.*_)?id$' OR col_description(c.oid, a.attnum) IS NOT NULL)
    ORDER BY c.relname, a.attnum`);
}

/** The table of docs/privacy.md: the marks of the personal columns, without the word "personal". */
export function personalTable(columns: readonly TextColumn[]): string {
  const marks = Map.groupBy(columns, ({ mark }) => mark?.match(/^personal: (.*)$/)?.[1]);
  marks.delete(undefined);
  const rows = [...marks].map(([mark, of]) => `| ${mark} | ${of.map(({ column }) => `\`${column}\``).join(", ")} |`);
  return ["| when the account is closed | columns |", "|---|---|", ...rows.sort()].join("\n");
}
