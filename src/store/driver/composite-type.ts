/** Bytes are written in hex. */
type Field = string | number | bigint | { readonly hex: string } | undefined;

/** Text that needs no quotes inside a row. */
const PLAIN = /^[\w.-]+$/;

/**
 * A composite type of the schema. A batch travels as an array of it: PostgreSQL reads that in half the time of
 * the same rows in JSON.
 */
export class CompositeType<Name extends string> {
  readonly name: string;
  /** In the order of the type. */
  readonly fields: readonly Name[];

  constructor(name: string, fields: readonly Name[]) {
    this.name = name;
    this.fields = fields;
  }

  /** The rows as an array in PostgreSQL's text form. A field that is left out is null. */
  arrayOf(rows: readonly { readonly [Key in Name]?: Field }[]): string {
    let text = "";
    for (const row of rows) {
      text += text === "" ? '"(' : ',"(';
      let separator = "";
      for (const field of this.fields) {
        text += separator + fieldText(row[field]);
        separator = ",";
      }
      text += ')"';
    }
    return `{${text}}`;
  }
}

/** Escaped twice: as a field of a row, and the row as an element of an array. */
function fieldText(value: Field): string {
  if (value === undefined) return "";
  if (typeof value === "object") return String.raw`\\\\x` + value.hex;
  if (typeof value !== "string") return String(value);
  return PLAIN.test(value) ? value : `\\"${value.replace(/["\\]/g, String.raw`\\\$&`)}\\"`;
}
