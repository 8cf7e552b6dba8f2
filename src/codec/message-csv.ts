import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { csvLine } from "../domain/csv.ts";
import { isWellKnown } from "./json/well-known.ts";
import { fieldWriterOf } from "./json/writer.ts";

/** Prints messages as lines of CSV (RFC 4180). */
type CsvWriter = { readonly header: string; readonly line: (message: Message) => string };

type Column = { readonly name: string; readonly read: (message: Message) => string };

/** The columns are the fields of the message, in order; those of a message inside it follow its name. */
export function csvWriterOf(desc: DescMessage): CsvWriter {
  const columns = columnsOf(desc, "");
  return {
    header: csvLine(columns.map(({ name }) => name)),
    line: (message) => csvLine(columns.map(({ read }) => read(message))),
  };
}

function columnsOf(desc: DescMessage, prefix: string): Column[] {
  return desc.fields.flatMap((field): Column[] => {
    const name = prefix + field.name;
    if (field.fieldKind !== "message" || isWellKnown(field.message)) return [{ name, read: textReader(field) }];
    return columnsOf(field.message, `${name}_`).map((column) => ({
      name: column.name,
      read: (message) => {
        const inner = (message as unknown as Record<string, Message | undefined>)[field.localName];
        return inner === undefined ? "" : column.read(inner);
      },
    }));
  });
}

/** The value as in JSON, without quotes; empty for null. */
function textReader(field: DescField): (message: Message) => string {
  const write = fieldWriterOf(field);
  return (message) => {
    const json = write(message);
    if (json === "null") return "";
    return json.startsWith('"') ? (JSON.parse(json) as string) : json;
  };
}
