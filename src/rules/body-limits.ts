import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** The minimum limit, for requests that carry almost no data. */
export const SMALL_BODY_BYTES = 65_536;

/** A JSON character takes at most two six-byte escapes; any other encoding is shorter. */
const BYTES_PER_CHARACTER = 12;

/** The longest form of a number, an enum name or a timestamp in a normal request. */
const VALUE_BYTES = 64;

/** Quotes, a colon, a comma, and white space around them. */
const PUNCTUATION_BYTES = 64;

const SHORT_WELL_KNOWN = new Set(["google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask"]);

/** The largest body that the rules of the request allow, capped by the setting. */
export function maxBodyBytesOf(input: DescMessage, settingBytes: number): number {
  return Math.min(settingBytes, Math.max(SMALL_BODY_BYTES, bytesOfMessage(input)));
}

const messageBytes = new WeakMap<DescMessage, number>();

function bytesOfMessage(desc: DescMessage): number {
  if (SHORT_WELL_KNOWN.has(desc.typeName)) return VALUE_BYTES;
  if (desc.typeName.startsWith("google.protobuf.")) return Number.POSITIVE_INFINITY;
  let bytes = messageBytes.get(desc);
  if (bytes === undefined) {
    // A message that can contain itself has no largest size.
    messageBytes.set(desc, Number.POSITIVE_INFINITY);
    bytes = desc.fields.reduce((sum, field) => sum + bytesOfField(field), PUNCTUATION_BYTES);
    messageBytes.set(desc, bytes);
  }
  return bytes;
}

function bytesOfField(field: DescField): number {
  if (field.fieldKind === "map") return Number.POSITIVE_INFINITY;
  const items = field.fieldKind === "list" ? maxItemsOf(field) : 1;
  const name = Math.max(field.name.length, field.jsonName.length);
  return name + PUNCTUATION_BYTES + items * (bytesOfValue(field) + PUNCTUATION_BYTES);
}

function bytesOfValue(field: DescField): number {
  if (field.message) return bytesOfMessage(field.message);
  if (field.scalar === ScalarType.BYTES) return Number.POSITIVE_INFINITY;
  if (field.scalar !== ScalarType.STRING) return VALUE_BYTES;
  return Math.min(maxCharactersOf(field), longestWord(field)) * BYTES_PER_CHARACTER;
}

/** The longest of the values that a text must be one of. */
function longestWord(field: DescField): number {
  const rules = itemRulesOf(field);
  const words = rules?.case === "string" ? rules.value.in : [];
  return words.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...words.map((word) => word.length));
}

const knownRules = new WeakMap<DescField, FieldRules["type"] | undefined>();

/** The rules of a field; those of a list are rules for the whole list. They are decoded once: each start asks for them several times. */
function rulesOf(field: DescField): FieldRules["type"] | undefined {
  if (!knownRules.has(field)) knownRules.set(field, hasOption(field, fieldRules) ? getOption(field, fieldRules).type : undefined);
  return knownRules.get(field);
}

function itemRulesOf(field: DescField): FieldRules["type"] | undefined {
  const rules = rulesOf(field);
  return rules?.case === "repeated" ? rules.value.items?.type : rules;
}

/**
 * The maximum number of items that the .proto allows in a list. It is checked first, so that excess items
 * cost no work.
 */
export function maxItemsOf(field: DescField): number {
  const rules = field.fieldKind === "list" ? rulesOf(field) : undefined;
  return limitOf(rules?.case === "repeated" ? rules.value.maxItems : 0n);
}

export function tooMany(max: number): string {
  return `must have at most ${max} items`;
}

/** The texts that the .proto allows in a field, besides the empty one. */
export function allowedTextsOf(field: DescField): readonly string[] {
  const rules = rulesOf(field);
  return rules?.case === "string" ? rules.value.in.filter((text) => text !== "") : [];
}

/** The largest number that the .proto allows in a field of 32 bits. */
export function maximumOf(field: DescField): number {
  const rules = rulesOf(field);
  const { lessThan } = rules?.case === "int32" ? rules.value : { lessThan: undefined };
  return lessThan?.case === "lte" ? lessThan.value : Number.POSITIVE_INFINITY;
}

/** The maximum number of characters that the .proto allows in the texts of a field. */
export function maxCharactersOf(field: DescField): number {
  const rules = itemRulesOf(field);
  return limitOf(rules?.case === "string" ? rules.value.maxLen : 0n);
}

/** The maximum size that the .proto allows for the bytes of a field. */
export function maxBytesOf(field: DescField): number {
  const rules = itemRulesOf(field);
  return limitOf(rules?.case === "bytes" ? rules.value.maxLen : 0n);
}

/** 0 is the value of a rule that is not set. */
function limitOf(max: bigint): number {
  return max === 0n ? Number.POSITIVE_INFINITY : Number(max);
}

export function tooManyBytes(max: number): string {
  return `must be at most ${max} bytes`;
}

export function tooLong(max: number): string {
  return `must be at most ${max} characters`;
}
