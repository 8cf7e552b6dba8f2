import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { writerOf } from "../codec/json/writer.ts";
import { UNSAFE, visible } from "./visible.ts";

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

/** Prints rows under a header. Column widths stay the same across pages while the rows fit. */
export function createTable<Row>(columns: readonly Column<Row>[]): (rows: readonly Row[]) => string {
  const widths = columns.map(({ title }) => width(title));
  let header = true;
  return (rows) => {
    const lines = rows.map((row) => columns.map(({ value }) => visible(value(row)) || "-"));
    if (header) lines.unshift(columns.map(({ title }) => title));
    header = false;
    for (const line of lines) {
      line.forEach((cell, i) => {
        widths[i] = Math.max(widths[i] ?? 0, width(cell));
      });
    }
    return lines.map((line) => `${alignLine(line, columns, widths)}\n`).join("");
  };
}

export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return createTable(columns)(rows);
}

function alignLine<Row>(line: string[], columns: readonly Column<Row>[], widths: number[]): string {
  const cells = line.map((cell, i) => {
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
