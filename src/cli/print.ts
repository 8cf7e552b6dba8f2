import { type DescField, type DescMessage, type Message, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema, timestampDate } from "@bufbuild/protobuf/wkt";
import { writerOf } from "../codec/json/writer.ts";
import { formatMicros } from "../domain/money.ts";
import { printOut, UNSAFE, visible } from "./output.ts";

export type Column<Row> = {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly align?: "right";
};

const GAP = "  ";

export type JsonOption = { readonly json: boolean };

type FieldOf<M> = Exclude<keyof M, "$typeName" | "$unknown"> & string;
/** The fields with a message, whose own fields are columns. */
type NestedOf<M> = {
  [F in FieldOf<M>]: NonNullable<M[F]> extends Timestamp ? never : NonNullable<M[F]> extends Message ? F : never;
}[FieldOf<M>];
type LeafOf<M, Nested extends NestedOf<M> = NestedOf<M>> =
  | Exclude<FieldOf<M>, NestedOf<M>>
  | { [N in Nested]: FieldOf<NonNullable<M[N]>> }[Nested];
/** The message, or that of its nested ones, with this field. */
type OwnerOf<M, F> = F extends keyof M
  ? M
  : { [N in NestedOf<M>]: F extends keyof NonNullable<M[N]> ? NonNullable<M[N]> : never }[NestedOf<M>];
type Texts<M> = {
  readonly [F in LeafOf<M>]?: F extends keyof OwnerOf<M, F> ? (value: OwnerOf<M, F>[F], owner: OwnerOf<M, F>) => string : never;
};
/** The fields of a list such as "id, maskedKey as KEY". */
type Listed<List extends string> = List extends `${infer First},${infer Rest}`
  ? Listed<First> | Listed<Rest>
  : List extends `${" " | "\n"}${infer Trimmed}`
    ? Listed<Trimmed>
    : List extends `${infer Field} as ${string}`
      ? Field
      : List;
type Wrong<M, Shown, Omitted> =
  | Exclude<LeafOf<M, Exclude<NestedOf<M>, Omitted>>, Shown | Omitted>
  | Exclude<Shown | Omitted, LeafOf<M> | NestedOf<M>>;

/**
 * The columns of a message and of the messages in it, such as "id, maskedKey as KEY". A title follows from the name of its field,
 * and a text from its type. `omitted` lists the other fields by the reason why they have no column. A field in neither is a type
 * error.
 */
export function columnsOf<
  Desc extends DescMessage,
  const Shown extends string,
  const Omitted extends Readonly<Record<string, string>>,
>(
  desc: Desc,
  shown: [Wrong<MessageShape<Desc>, Listed<Shown>, Listed<Omitted[keyof Omitted]>>] extends [never]
    ? Shown
    : `missing or unknown: ${Wrong<MessageShape<Desc>, Listed<Shown>, Listed<Omitted[keyof Omitted]>>}`,
  _omitted: Omitted,
  texts: Texts<MessageShape<Desc>> = {},
): readonly Column<MessageShape<Desc>>[] {
  return (shown as string).split(/,\s+/).map((item) => {
    const [name = "", title = titleOf(name)] = item.split(" as ");
    const nested = name in desc.field ? undefined : desc.fields.find(({ message }) => message && name in message.field);
    const field = (nested?.message ?? desc).field[name] as DescField;
    const text = ((texts as Record<string, unknown>)[name] ?? textOf(field)) as (value: unknown, owner: object) => string;
    const value = (row: object) => {
      const owner = nested ? (row as Record<string, object | undefined>)[nested.localName] : row;
      return owner ? text((owner as Record<string, unknown>)[name], owner) : "";
    };
    return isNumber(field) ? { title, value, align: "right" } : { title, value };
  });
}

function titleOf(field: string): string {
  return field
    .replace(/(At|Id|Micros)$/, "")
    .replaceAll(/[A-Z]/g, " $&")
    .toUpperCase();
}

/** Integers, and amounts, which are texts beside a field with micros. */
function isNumber({ fieldKind, scalar, name, parent }: DescField): boolean {
  if (fieldKind !== "scalar") return false;
  return /INT/.test(ScalarType[scalar]) || parent.fields.some((other) => other.name === `${name}_micros`);
}

function textOf(field: DescField): (value: unknown) => string {
  if (field.message === TimestampSchema) return (value) => formatTime(value as Timestamp | undefined);
  if (field.fieldKind === "list" && field.listKind === "scalar") return (value) => (value as readonly unknown[]).join(",");
  if (field.fieldKind !== "scalar") throw new Error(`${field} needs a text`);
  if (field.name.endsWith("_micros")) return (value) => formatMicros(value as bigint);
  return (value) => (typeof value === "boolean" ? (value ? "yes" : "") : String(value));
}

/**
 * Prints the message as REST JSON on one line. Characters that control a terminal are escaped, which leaves
 * the JSON value unchanged.
 */
export function jsonLine<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): string {
  return `${writerOf(desc)(message).replace(UNSAFE, escapeUnit)}\n`;
}

function escapeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * Prints rows under a header, without the columns that are empty in all of them. A later page keeps the columns and their widths
 * while its rows fit; it has a new header if it needs another column.
 */
export function createTable<Row>(columns: readonly Column<Row>[]): (rows: readonly Row[]) => string {
  const widths = columns.map(({ title }) => width(title));
  let shown: ReadonlySet<number> = new Set();
  return (rows) => {
    const lines = rows.map((row) => columns.map(({ value }) => visible(value(row))));
    const needed = [...columns.keys()].filter((i) => rows.length === 0 || shown.has(i) || lines.some((line) => line[i] !== ""));
    if (needed.length > shown.size) lines.unshift(columns.map(({ title }) => title));
    shown = new Set(needed);
    for (const line of lines) {
      for (const i of needed) widths[i] = Math.max(widths[i] ?? 0, width(line[i] ?? ""));
    }
    return lines.map((line) => `${alignLine(line, columns, widths, needed)}\n`).join("");
  };
}

export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return createTable(columns)(rows);
}

/** The table of a message that a response has, if it exists. */
export function tableOf<Row>(columns: readonly Column<Row>[], row: Row | undefined): string {
  return formatTable(columns, row === undefined ? [] : [row]);
}

function alignLine<Row>(
  line: readonly string[],
  columns: readonly Column<Row>[],
  widths: readonly number[],
  shown: readonly number[],
): string {
  const cells = shown.map((i) => {
    const cell = line[i] || "-";
    const space = " ".repeat((widths[i] ?? 0) - width(cell));
    return columns[i]?.align === "right" ? space + cell : cell + space;
  });
  return cells.join(GAP).trimEnd();
}

function width(text: string): number {
  return [...text].length;
}

/** Empty for zero. */
export const unlessZero = (count: bigint | number) => (count ? String(count) : "");
export const amountUnlessZero = (micros: bigint) => (micros ? formatMicros(micros) : "");

export function pairsText(data: Readonly<Record<string, unknown>> = {}): string {
  return Object.entries(data)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

/** UTC, to the second; empty if the time is unset. */
export function formatTime(time: Timestamp | undefined): string {
  return time === undefined
    ? ""
    : timestampDate(time)
        .toISOString()
        .replace(/\.\d+Z$/, "Z");
}

/** Prints the response as JSON or as text. Returns false if the reader closed the pipe. */
export async function printResponse<Desc extends DescMessage>(
  isJson: boolean,
  desc: Desc,
  response: MessageShape<Desc>,
  text: () => string,
): Promise<boolean> {
  return await printOut(isJson ? jsonLine(desc, response) : text());
}
