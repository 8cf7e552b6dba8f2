import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** The minimum limit, for requests that carry almost no data. */
export const SMALL_BODY_BYTES = 65_536;

/** A JSON character takes at most two six-byte escapes; any other encoding is shorter. */
const BYTES_PER_CHARACTER = 12;

/** The longest form of a number, an enum name or a timestamp in a normal request. */
const VALUE_BYTES = 64;

/** Quotes, a colon, a comma, and white space around them. */
const PUNCTUATION_BYTES = 64;

const SHORT_WELL_KNOWN = new Set([
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "google.protobuf.FieldMask",
]);

/** The largest body that the rules of the request allow, capped by the setting. */
export function maxBodyBytesOf(input: DescMessage, settingBytes: number): number {
  return Math.min(settingBytes, Math.max(SMALL_BODY_BYTES, bytesOfMessage(input, [])));
}

function bytesOfMessage(desc: DescMessage, inside: readonly DescMessage[]): number {
  if (SHORT_WELL_KNOWN.has(desc.typeName)) return VALUE_BYTES;
  if (inside.includes(desc) || desc.typeName.startsWith("google.protobuf.")) return Number.POSITIVE_INFINITY;
  const around = [...inside, desc];
  return desc.fields.reduce((sum, field) => sum + bytesOfField(field, around), PUNCTUATION_BYTES);
}

function bytesOfField(field: DescField, inside: readonly DescMessage[]): number {
  if (field.fieldKind === "map") return Number.POSITIVE_INFINITY;
  const items = field.fieldKind === "list" ? maxItemsOf(field) : 1;
  const name = Math.max(field.name.length, field.jsonName.length);
  return name + PUNCTUATION_BYTES + items * (bytesOfValue(field, inside) + PUNCTUATION_BYTES);
}

function bytesOfValue(field: DescField, inside: readonly DescMessage[]): number {
  if (field.message) return bytesOfMessage(field.message, inside);
  if (field.scalar === ScalarType.BYTES) return Number.POSITIVE_INFINITY;
  if (field.scalar !== ScalarType.STRING) return VALUE_BYTES;
  return Math.min(maxCharactersOf(field), longestWord(field)) * BYTES_PER_CHARACTER;
}

/** The longest of the values that a text must be one of. */
function longestWord(field: DescField): number {
  if (!hasOption(field, fieldRules)) return Number.POSITIVE_INFINITY;
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  const words = rules?.case === "string" ? rules.value.in : [];
  return words.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...words.map((word) => word.length));
}

const known = new WeakMap<DescField, number>();

/**
 * The maximum number of items that the .proto allows in a list. It is checked first, so that excess items
 * cost no work.
 */
export function maxItemsOf(field: DescField): number {
  let max = known.get(field);
  if (max === undefined) {
    max = readMaxItems(field);
    known.set(field, max);
  }
  return max;
}

function readMaxItems(field: DescField): number {
  if (field.fieldKind !== "list" || !hasOption(field, fieldRules)) return Number.POSITIVE_INFINITY;
  const { type } = getOption(field, fieldRules);
  const max = type.case === "repeated" ? type.value.maxItems : 0n;
  return max === 0n ? Number.POSITIVE_INFINITY : Number(max);
}

export function tooMany(max: number): string {
  return `must have at most ${max} items`;
}

/** The maximum number of characters that the .proto allows in the texts of a field. */
export function maxCharactersOf(field: DescField): number {
  if (!hasOption(field, fieldRules)) return Number.POSITIVE_INFINITY;
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  const max = rules?.case === "string" ? rules.value.maxLen : 0n;
  return max === 0n ? Number.POSITIVE_INFINITY : Number(max);
}

/** The maximum size that the .proto allows for the bytes of a field. */
export function maxBytesOf(field: DescField): number {
  if (!hasOption(field, fieldRules)) return Number.POSITIVE_INFINITY;
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  const max = rules?.case === "bytes" ? rules.value.maxLen : 0n;
  return max === 0n ? Number.POSITIVE_INFINITY : Number(max);
}

export function tooManyBytes(max: number): string {
  return `must be at most ${max} bytes`;
}

export function tooLong(max: number): string {
  return `must be at most ${max} characters`;
}
