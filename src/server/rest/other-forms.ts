import { type DescField, type DescMethod, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import { cloud_events as cloudEventsOption, csv_rows as csvRowsOption } from "../../../gen/vx/options/v1/options_pb.js";
import { writerOf } from "../../codec/json/writer.ts";
import { csvWriterOf } from "../../codec/message-csv.ts";

/** How a response is written for callers that accept something other than JSON. */
export type OtherForm = {
  readonly mediaType: string;
  readonly contentType: string;
  readonly text: (message: Message) => string;
  readonly headers: (message: Message) => [name: string, value: string][];
};

/** Undefined if the responses of the method are only JSON. */
export function otherFormOf(method: DescMethod): OtherForm | undefined {
  if (hasOption(method, csvRowsOption)) return csvForm(method, getOption(method, csvRowsOption));
  if (hasOption(method, cloudEventsOption)) return cloudEventsForm(method, getOption(method, cloudEventsOption));
  return undefined;
}

function csvForm(method: DescMethod, name: string): OtherForm {
  const rows = listOf(method, name);
  const { header, line } = csvWriterOf(rows.message);
  return {
    mediaType: "text/csv",
    contentType: "text/csv; charset=utf-8",
    text: (message) => header + messagesOf(rows, message).map(line).join(""),
    headers: headersOf(method, rows),
  };
}

const CLOUD_EVENTS = "application/cloudevents-batch+json";

/** An event as REST JSON has it. */
type Event = Readonly<Record<"id" | "type" | "created_at" | "account_id" | "data" | "seq", unknown>>;

function cloudEventsForm(method: DescMethod, name: string): OtherForm {
  const rows = listOf(method, name);
  const write = writerOf(rows.message);
  return {
    mediaType: CLOUD_EVENTS,
    contentType: `${CLOUD_EVENTS}; charset=utf-8`,
    text: (message) => JSON.stringify(messagesOf(rows, message).map((event) => cloudEventOf(JSON.parse(write(event)) as Event))),
    headers: headersOf(method, rows),
  };
}

function cloudEventOf(event: Event): object {
  return {
    specversion: "1.0",
    id: event.id,
    source: "/v1/account",
    subject: event.account_id,
    type: event.type,
    time: event.created_at,
    datacontenttype: "application/json",
    data: event.data,
    // Of the sequence extension of CloudEvents.
    sequence: String(event.seq),
  };
}

type MessageList = Extract<DescField, { fieldKind: "list"; listKind: "message" }>;

function listOf(method: DescMethod, name: string): MessageList {
  const rows = method.output.fields.find((field) => field.name === name);
  if (rows?.fieldKind !== "list" || rows.listKind !== "message") {
    throw new Error(`${method.output.typeName} has no repeated messages "${name}"`);
  }
  return rows;
}

/** The fields beside the messages, as headers. */
function headersOf({ output }: DescMethod, rows: MessageList): OtherForm["headers"] {
  const others = output.fields.filter((field) => field !== rows);
  return (message) => others.map((field) => [`x-${field.name.replaceAll("_", "-")}`, String(fieldOf(message, field.localName))]);
}

function messagesOf(rows: MessageList, message: Message): Message[] {
  return fieldOf(message, rows.localName) as Message[];
}

function fieldOf(message: Message, localName: string): unknown {
  return (message as unknown as Record<string, unknown>)[localName];
}

/** Whether the caller names the media type, and does not name JSON before it. */
export function prefers(accept: readonly string[], mediaType: string): boolean {
  const types = accept.join(",").toLowerCase().split(",");
  const known = types
    .map((type) => type.split(";"))
    .filter(([name = ""]) => [mediaType, "application/json"].includes(name.trim()));
  const [name, ...parameters] = known[0] ?? [];
  return name?.trim() === mediaType && !parameters.some((parameter) => /^\s*q=0(\.0*)?\s*$/.test(parameter));
}
