import * as fields from "../../gen/sql/fields.ts";

/**
 * A composite type of the schema. A batch travels as an array of it: PostgreSQL reads that in half the time of
 * the same rows in JSON.
 */
export class CompositeType<Name extends string> {
  /** In the order of the type. */
  readonly fields: readonly Name[];

  constructor(fields: readonly Name[]) {
    this.fields = fields;
  }

  /** The rows as an array in PostgreSQL's text form. A field that is left out is null. */
  arrayOf(rows: readonly { readonly [Key in Name]?: Field }[]): string {
    let text = "";
    for (const row of rows) {
      text += text === "" ? '"(' : ',"(';
      let separator = "";
      for (const field of this.fields) {
        text += separator + fieldText(row[field], IN_ARRAY);
        separator = ",";
      }
      text += ')"';
    }
    return `{${text}}`;
  }

  /** A row in PostgreSQL's text form. A field that is left out is null. */
  rowOf(row: { readonly [Key in Name]?: Field }): string {
    let text = "";
    let separator = "(";
    for (const field of this.fields) {
      text += separator + fieldText(row[field], IN_ROW);
      separator = ",";
    }
    return `${text})`;
  }
}

/** Text that needs no quotes inside a row. */
const PLAIN = /^[\w.-]+$/;
/** Looked for first: a replacement that replaces nothing takes most of the time of a row. */
const ESCAPED = /["\\]/;
const ALL_ESCAPED = new RegExp(ESCAPED, "g");
/** How a field that needs quotes is written in a row, and how in a row that is an element of an array: escaped twice. */
const IN_ROW = { quote: '"', escape: String.raw`\$&`, hex: String.raw`\\x` };
const IN_ARRAY = { quote: String.raw`\"`, escape: String.raw`\\\$&`, hex: String.raw`\\\\x` };

/** An item of vx.admit: all calls of a batch with the same key. */
export const admitItem = new CompositeType(fields.admitItem);

/** A hold that vx.bill places. */
export const holdItem = new CompositeType(fields.holdItem);

/** The ending of a hold by vx.bill: with a charge, or without one. */
export const entryItem = new CompositeType(fields.entryItem);

/** A minute of an account with failed calls, for vx.record_failures. */
export const failureMinute = new CompositeType(fields.failureMinute);

/** A failed call. */
export const failureItem = new CompositeType(fields.failureItem);

/** The prices of a model, for vx.register_prices. */
export const priceItem = new CompositeType(fields.priceItem);

/** The prices without a bound, or those of a tier. */
export const priceRates = new CompositeType(fields.priceRates);

/** Bytes are written in hex. */
type Field = string | number | bigint | { readonly hex: string } | undefined;

function fieldText(value: Field, form: typeof IN_ROW): string {
  if (value === undefined) return "";
  if (typeof value === "object") return form.hex + value.hex;
  if (typeof value !== "string") return String(value);
  if (PLAIN.test(value)) return value;
  return form.quote + (ESCAPED.test(value) ? value.replace(ALL_ESCAPED, form.escape) : value) + form.quote;
}
