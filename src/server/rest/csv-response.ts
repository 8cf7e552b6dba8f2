import { type DescMethod, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import { csv_rows as csvRowsOption } from "../../../gen/vx/options/v1/options_pb.js";
import { csvWriterOf } from "../../codec/message-csv.ts";

/** How a response is written for callers that accept CSV. */
export type CsvForm = {
  readonly text: (message: Message) => string;
  readonly headers: (message: Message) => [name: string, value: string][];
};

/** Undefined if the method has no rows. */
export function csvFormOf(method: DescMethod): CsvForm | undefined {
  if (!hasOption(method, csvRowsOption)) return undefined;
  const name = getOption(method, csvRowsOption);
  const { fields } = method.output;
  const rows = fields.find((field) => field.name === name);
  if (rows?.fieldKind !== "list" || rows.listKind !== "message") {
    throw new Error(`${method.output.typeName} has no repeated messages "${name}" for CSV`);
  }
  const { header, line } = csvWriterOf(rows.message);
  const others = fields.filter((field) => field !== rows);
  return {
    text: (message) => header + (fieldOf(message, rows.localName) as Message[]).map(line).join(""),
    headers: (message) =>
      others.map((field) => [
        `x-${field.name.replaceAll("_", "-")}`,
        String(fieldOf(message, field.localName)),
      ]),
  };
}

function fieldOf(message: Message, localName: string): unknown {
  return (message as unknown as Record<string, unknown>)[localName];
}

/** Whether the caller names CSV, and does not name JSON before it. */
export function prefersCsv(accept: readonly string[]): boolean {
  const types = accept.join(",").toLowerCase().split(",");
  const known = types.map((type) => type.split(";")).filter(([name = ""]) => KNOWN.includes(name.trim()));
  const [name, ...parameters] = known[0] ?? [];
  return name?.trim() === "text/csv" && !parameters.some((parameter) => /^\s*q=0(\.0*)?\s*$/.test(parameter));
}

const KNOWN: readonly string[] = ["text/csv", "application/json"];
