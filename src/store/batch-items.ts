import { SCOPES } from "../domain/scope.ts";

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
export const admitItem = new CompositeType("admit_item", ["lane", "fingerprint", ...SCOPES, "any_scope", "cidrs"]);

/** A hold that vx.bill places. */
export const holdItem = new CompositeType("hold_item", [
  "lane",
  "account_id",
  "generation_id",
  "key_id",
  "amount",
  "seconds",
  "idempotency_key",
  "digest",
  "model",
  "user_id",
  "tokens",
  "fingerprint",
  "scopes",
  "cidrs",
  "price_list_version",
]);

/** The ending of a hold by vx.bill: with a charge, or without one. */
export const entryItem = new CompositeType("entry_item", [
  "lane",
  "account_id",
  "generation_id",
  "id",
  "month",
  "kind",
  "amount",
  "reason",
  "request_id",
  "key_id",
  "model",
  "price_version",
  "input",
  "cached_input",
  "cache_write",
  "output",
  "reasoning",
  "images",
  "image_tokens",
  "user_id",
  "trace_id",
  "answer",
  "cache_write_1h",
  "price_tier",
  "price_list_version",
  "upstream",
  "upstream_cost",
  "adjusted_id",
]);

/** A minute of an account with failed calls, for vx.record_failures. */
export const failureMinute = new CompositeType("failure_minute", ["lane", "account_id", "id", "at_ms", "calls", "omitted"]);

/** A failed call. */
export const failureItem = new CompositeType("failure_item", [
  "minute",
  "later",
  "id",
  "at_ms",
  "key_id",
  "method",
  "model",
  "upstream",
  "status",
  "code",
  "message",
  "latency_ms",
  "request_id",
]);

/** The prices of a model, for vx.register_prices. */
export const priceItem = new CompositeType("price_item", ["model", "rates"]);

/** The prices without a bound, or those of a tier. */
export const priceRates = new CompositeType("price_rates", [
  "above_input_tokens",
  "input",
  "cached_input",
  "cache_write",
  "cache_write_1h",
  "output",
  "reasoning",
  "image",
  "request",
]);

/** Bytes are written in hex. */
type Field = string | number | bigint | { readonly hex: string } | undefined;

function fieldText(value: Field, form: typeof IN_ROW): string {
  if (value === undefined) return "";
  if (typeof value === "object") return form.hex + value.hex;
  if (typeof value !== "string") return String(value);
  if (PLAIN.test(value)) return value;
  return form.quote + (ESCAPED.test(value) ? value.replace(ALL_ESCAPED, form.escape) : value) + form.quote;
}
