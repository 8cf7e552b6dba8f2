import { type DescField, type DescMessage, fromJson, type JsonValue, type Message } from "@bufbuild/protobuf";

const WRAPPERS = named("DoubleValue FloatValue Int64Value UInt64Value Int32Value UInt32Value BoolValue StringValue BytesValue");
const OTHERS = named("Timestamp Duration FieldMask Struct Value ListValue Any");

/** Timestamp, Duration, wrappers, Struct and the like have JSON forms of their own. */
export function isWellKnown(desc: DescMessage): boolean {
  return WRAPPERS.has(desc.typeName) || OTHERS.has(desc.typeName);
}

/** DoubleValue and the other wrappers, whose JSON form is that of their value. */
export function isWrapper(desc: DescMessage): boolean {
  return WRAPPERS.has(desc.typeName);
}

/** Parses a value whose form only the protobuf library knows. */
export function parseWellKnown(desc: DescMessage, json: JsonValue): Message {
  return desc.typeName === "google.protobuf.Timestamp" ? parseTime(desc, json) : fromJson(desc, json);
}

/** The errors of the library do not say which form is right, and it reads February 30 as March 2. */
function parseTime(desc: DescMessage, json: JsonValue): Message {
  let time: Message;
  try {
    time = fromJson(desc, json);
  } catch {
    throw new Error('must be a time with its zone, such as "2026-01-31T12:00:00Z"');
  }
  if (!hasDay(json as string)) throw new Error("must be a date that exists");
  return time;
}

/** Whether the month of an RFC 3339 time has its day. */
function hasDay(time: string): boolean {
  const [year, month, day] = time.slice(0, 10).split("-").map(Number) as [number, number, number];
  const date = new Date(0);
  // The day 0 of the next month is the last one of the month. Date.UTC would change years below 100.
  date.setUTCFullYear(year, month, 0);
  return day <= date.getUTCDate();
}

/** A field of a wrapper type is stored as the bare value; only lists, maps and oneofs store the message. */
export function holdsBareValue(field: DescField): boolean {
  return field.fieldKind === "message" && !field.oneof && isWrapper(field.message);
}

/** Whether null is a value of the field, not its absence. */
export function hasOwnNull({ message, enum: desc }: DescField): boolean {
  return message?.typeName === "google.protobuf.Value" || desc?.typeName === "google.protobuf.NullValue";
}

function named(names: string): ReadonlySet<string> {
  return new Set(names.split(" ").map((name) => `google.protobuf.${name}`));
}
