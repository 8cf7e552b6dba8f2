import { type DescField, type DescMessage, type JsonValue, type Message, ScalarType, toJson } from "@bufbuild/protobuf";
import { InvalidRequestError } from "./errors.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Throws for a value that no field of its type can have, with the name of the field. Programs without types send such values,
 * and the encoding of protobuf converts some of them without an error.
 */
export function checkTypes(desc: DescMessage, message: Message, path = ""): void {
  for (const [field, value] of valuesOf(desc, message)) {
    const name = path + field.localName;
    if (field.fieldKind !== "list") checkValue(field, value, name);
    else if (!Array.isArray(value)) throw wrongType(name, "an array");
    else for (const [index, item] of value.entries()) checkValue(field, item, `${name}[${index}]`);
  }
}

function checkValue(field: DescField, value: unknown, name: string): void {
  if (field.scalar !== undefined && field.fieldKind !== "map") {
    const expected = EXPECTED[field.scalar] ?? NUMBER;
    if (!expected.accepts(value)) throw wrongType(name, expected.text);
  }
  if (field.message === undefined || field.fieldKind === "map" || isWellKnown(field.message)) return;
  if (!isMessage(value)) throw wrongType(name, "an object");
  checkTypes(field.message, value, `${name}.`);
}

type Expected = { readonly text: string; readonly accepts: (value: unknown) => boolean };

const NUMBER: Expected = { text: "a number", accepts: (value) => typeof value === "number" };
const INTEGER: Expected = { text: "an integer", accepts: Number.isInteger };
const BIGINT: Expected = {
  text: "a bigint",
  accepts: (value) => typeof value === "bigint" || Number.isSafeInteger(value),
};

const EXPECTED: Partial<Record<ScalarType, Expected>> = {
  [ScalarType.STRING]: { text: "a string", accepts: (value) => typeof value === "string" },
  [ScalarType.BOOL]: { text: "a boolean", accepts: (value) => typeof value === "boolean" },
  [ScalarType.BYTES]: { text: "a Uint8Array", accepts: (value) => value instanceof Uint8Array },
  [ScalarType.INT32]: INTEGER,
  [ScalarType.UINT32]: INTEGER,
  [ScalarType.INT64]: BIGINT,
  [ScalarType.UINT64]: BIGINT,
};

function wrongType(name: string, expected: string): InvalidRequestError {
  return new InvalidRequestError(`${name}: must be ${expected}`, { code: "invalid_argument" });
}

/** Lets JSON.stringify write the message, and each one in it, as ProtoJSON: it cannot write a bigint. */
export function addToJson(desc: DescMessage, message: Message): void {
  Object.defineProperty(message, "toJSON", { value: (): JsonValue => toJson(desc, message) });
  for (const [field, value] of valuesOf(desc, message)) {
    if (field.message === undefined || field.fieldKind === "map" || isWellKnown(field.message)) continue;
    for (const item of field.fieldKind === "list" ? (value as unknown[]) : [value])
      if (isMessage(item)) addToJson(field.message, item);
  }
}

/** The fields that are set. */
function valuesOf(desc: DescMessage, message: Message): [DescField, unknown][] {
  const fields = message as unknown as Fields;
  return desc.fields.flatMap((field): [DescField, unknown][] => {
    const oneof = field.oneof && (fields[field.oneof.localName] as { case?: string; value?: unknown } | undefined);
    const value = field.oneof ? (oneof?.case === field.localName ? oneof.value : undefined) : fields[field.localName];
    return value === undefined ? [] : [[field, value]];
  });
}

function isMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && "$typeName" in value;
}

/** Types such as Timestamp and Struct have forms of their own. */
function isWellKnown({ typeName }: DescMessage): boolean {
  return typeName.startsWith("google.protobuf.");
}
