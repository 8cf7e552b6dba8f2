import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { malformed } from "./cursor.ts";
import { holdsJson } from "./field-plan.ts";

/** A field that the reader can decode itself, apart from the rest of its message. */
export type OwnField = {
  readonly field: DescField;
  /** The type of its messages; undefined if it holds untyped values. */
  readonly inner: DescMessage | undefined;
  /** Whether it always decodes the field, because the library would create a message for each untyped value. */
  readonly isAlways: boolean;
};

type OwnFields = { readonly byNumber: ReadonlyMap<number, OwnField>; readonly hasJson: boolean };

const known = new WeakMap<DescMessage, OwnFields>();

export function ownFieldsOf(desc: DescMessage): OwnFields {
  let own = known.get(desc);
  if (!own) {
    const fields = desc.fields.flatMap((field) => ownField(field) ?? []);
    own = {
      byNumber: new Map(fields.map((one) => [one.field.number, one])),
      hasJson: fields.some(({ isAlways }) => isAlways),
    };
    known.set(desc, own);
  }
  return own;
}

function ownField(field: DescField): OwnField | undefined {
  if (holdsJson(field)) return { field, inner: undefined, isAlways: true };
  if (!field.message || !isStoredAsMessage(field)) return undefined;
  const isAlways = containsJson(field.message);
  if (field.fieldKind === "map" && !isAlways) return undefined;
  return { field, inner: field.message, isAlways };
}

/** Whether a message of that type can contain untyped values. */
function containsJson(desc: DescMessage, above: readonly DescMessage[] = []): boolean {
  if (above.includes(desc)) return false;
  return desc.fields.some(
    (field) => holdsJson(field) || (field.message && containsJson(field.message, [...above, desc])),
  );
}

const STORED_AS_MESSAGE = new Set(["google.protobuf.Value", "google.protobuf.ListValue"]);

/** Most well-known types are stored in another form. */
function isStoredAsMessage({ message, parent }: DescField): boolean {
  const name = message?.typeName ?? "";
  if (name === "google.protobuf.Struct") return parent.typeName === "google.protobuf.Value";
  return !name.startsWith("google.protobuf.") || STORED_AS_MESSAGE.has(name);
}

type KeyReader = (reader: BinaryReader) => string | number | bigint | boolean;

const KEY_READERS: Readonly<Partial<Record<ScalarType, KeyReader>>> = {
  [ScalarType.STRING]: (reader) => reader.string(true),
  [ScalarType.BOOL]: (reader) => reader.bool(),
  [ScalarType.INT32]: (reader) => reader.int32(),
  [ScalarType.UINT32]: (reader) => reader.uint32(),
  [ScalarType.SINT32]: (reader) => reader.sint32(),
  [ScalarType.FIXED32]: (reader) => reader.fixed32(),
  [ScalarType.SFIXED32]: (reader) => reader.sfixed32(),
  [ScalarType.INT64]: (reader) => reader.int64(),
  [ScalarType.UINT64]: (reader) => reader.uint64(),
  [ScalarType.SINT64]: (reader) => reader.sint64(),
  [ScalarType.FIXED64]: (reader) => reader.fixed64(),
  [ScalarType.SFIXED64]: (reader) => reader.sfixed64(),
};

type MapField = DescField & { fieldKind: "map" };

/** The key of a map entry, as the name of a property. */
export function mapKeyOf(field: MapField, bytes: Uint8Array): string {
  try {
    return String(KEY_READERS[field.mapKey]?.(new BinaryReader(bytes)));
  } catch {
    throw malformed();
  }
}

/** The key of an entry that has none. */
export function defaultKeyOf({ mapKey }: MapField): string {
  if (mapKey === ScalarType.STRING) return "";
  return mapKey === ScalarType.BOOL ? "false" : "0";
}
