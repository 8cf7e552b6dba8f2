import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { writerOf } from "../codec/json/writer.ts";
import type { JsonOption } from "./command.ts";
import { printOut, UNSAFE, visible } from "./output.ts";

export type Column<Row> = {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly align?: "right";
};

const GAP = "  ";

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

/** UTC, to the second; empty if the time is unset. */
export function formatTime(time: Timestamp | undefined): string {
  return time === undefined
    ? ""
    : timestampDate(time)
        .toISOString()
        .replace(/\.\d+Z$/, "Z");
}

/** Prints the response as JSON or as a table. Returns false if the reader closed the pipe. */
export async function show<Desc extends DescMessage>(
  { json }: JsonOption,
  desc: Desc,
  response: MessageShape<Desc>,
  forPeople: () => string,
): Promise<boolean> {
  return await printOut(json ? jsonLine(desc, response) : forPeople());
}
