import {
  create,
  type DescField,
  type DescMessage,
  type DescService,
  getOption,
  hasOption,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import type { Value } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { containsKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { type JsonObject, type JsonValue, knownJsonText } from "../domain/json.ts";
import { charactersOf } from "../domain/text.ts";
import { maxCharactersOf, tooLong } from "./body-limits.ts";
import { fieldForUnknown, holdsPlainObject, isUntyped, jsonOf, readField } from "./untyped-values.ts";

const validator = createValidator();

/** Keeps the error readable and within the size limit of gRPC trailers. */
const MAX_VIOLATIONS = 16;
const MAX_FIELD_CHARACTERS = 100;
const MAX_DESCRIPTION_CHARACTERS = 200;

/**
 * Compiles the rules of every request at start, so that an invalid rule stops the start and the first call
 * does not wait.
 */
export function prepareValidation(services: readonly DescService[]): void {
  for (const { input } of services.flatMap(({ methods }) => methods)) {
    const { kind, error } = validator.validate(input, create(input));
    if (kind === "error") throw error;
  }
}

/** Checks a request against the rules of its .proto. The 400 error names the invalid fields. */
export function validateRequest(desc: DescMessage, message: Message): void {
  if (desc.fields.length === 0) return;
  refuseKeys(desc, message);
  checkCollectedFields(desc, message);
  const result = validator.validate(desc, withoutLongTexts(desc, message));
  if (result.kind === "valid") return;
  if (result.kind === "error") throw result.error;
  const fields = result.violations.slice(0, MAX_VIOLATIONS).map((violation) => ({
    field: shortened(pathToString(violation.field), MAX_FIELD_CHARACTERS),
    description: shortened(plainViolation(violation.message), MAX_DESCRIPTION_CHARACTERS),
  }));
  const more = result.violations.length - fields.length;
  const words = fields.map(({ field, description }) => `${field}: ${description}`);
  if (more > 0) words.push(`and ${more} more`);
  throw new DomainError("invalid_argument", { message: words.join("; "), fields });
}

function shortened(text: string, maxCharacters: number): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters)}…`;
}

/** Messages of protovalidate, and their replacements. */
const PLAIN: readonly (readonly [RegExp, string])[] = [
  [/^must be at least 1 characters$/, "must not be empty"],
  [/^must contain at least 1 item\(s\)$/, "must not be empty"],
  [/^must contain at least (\d+) item\(s\)$/, "must have at least $1 items"],
  [/^must contain no more than (\d+) item\(s\)$/, "must have at most $1 items"],
  [/^must be greater than or equal to (\S+) and less than or equal to (\S+)$/, "must be from $1 to $2"],
  [/^must not be in list \[(\S+)\]$/, "must not be $1"],
  [/^must be greater than (\S+) and less than or equal to (\S+)$/, "must be greater than $1 and at most $2"],
  [/^must be greater than or equal to (\S+)$/, "must be at least $1"],
  // An empty value in the list means that the field may be absent; the message omits it.
  [/^must be in list \[(?:, )?(.*)\]$/, "must be one of: $1"],
  [/^repeated value must contain unique items$/, "must not contain duplicates"],
  [/^value is required$/, "is required"],
];

/** Rewrites the message of a violation in the style of the other errors. */
function plainViolation(message: string): string {
  const [pattern, text] = PLAIN.find(([candidate]) => candidate.test(message)) ?? [];
  return pattern && text ? message.replace(pattern, text) : message;
}

const MAX_COLLECTED_NAMES = 64;
const MAX_COLLECTED_BYTES = 65_536;
const MAX_NAME_CHARACTERS = 100;

function checkCollectedFields(desc: DescMessage, message: Message): void {
  const field = fieldForUnknown(desc);
  if (!field) return;
  const collected = (message as unknown as Record<string, JsonObject | undefined>)[field.localName];
  if (collected === undefined) return;
  const entries = Object.entries(collected);
  if (entries.length > MAX_COLLECTED_NAMES) {
    throw DomainError.ofField(field.name, `the request has more than ${MAX_COLLECTED_NAMES} fields that are not known`);
  }
  for (const [name, value] of entries) {
    if (bytesLeft(value, MAX_COLLECTED_BYTES) < 0) {
      const shown = name.slice(0, MAX_NAME_CHARACTERS);
      throw DomainError.ofField(shown, `must be at most ${MAX_COLLECTED_BYTES} bytes of JSON`);
    }
  }
}

/** How many of the bytes the JSON of a value leaves; negative, and not read to its end, if it takes more. */
function bytesLeft(value: JsonValue, bytes: number): number {
  if (typeof value === "string") return value.length > bytes ? -1 : bytes - Buffer.byteLength(JSON.stringify(value));
  if (typeof value !== "object" || value === null) return bytes - String(value).length;
  const items = Array.isArray(value) ? (value as readonly JsonValue[]) : Object.entries(value).flat();
  // Two brackets; and for each item a comma or a colon, except for one.
  let left = items.length === 0 ? bytes - 2 : bytes - 1;
  for (const item of items) {
    left = bytesLeft(item as JsonValue, left - 1);
    if (left < 0) return left;
  }
  return left;
}

/**
 * An API key belongs only in the Authorization header: a key in a name would be stored, and a key in an id
 * would be logged by databases and proxies. Every text of a request is checked, in every field.
 */
function refuseKeys(desc: DescMessage, message: Message): void {
  const field = findInMessage(desc, message);
  if (field === undefined) return;
  throw DomainError.ofField(field, "must not contain an API key. If others can see the key, revoke it.");
}

/** The fields of each type that can contain texts. */
const textFields = new WeakMap<DescMessage, readonly DescField[]>();

function textFieldsOf(desc: DescMessage): readonly DescField[] {
  let fields = textFields.get(desc);
  if (!fields) {
    fields = desc.fields.filter(
      ({ message, scalar, fieldKind }) => message || scalar === ScalarType.STRING || fieldKind === "map",
    );
    textFields.set(desc, fields);
  }
  return fields;
}

/** The path of the first field that contains a key. */
function findInMessage(desc: DescMessage, message: Message): string | undefined {
  for (const field of textFieldsOf(desc)) {
    const path = findInField(field, readField(field, message));
    if (path !== undefined) return path;
  }
  return undefined;
}

function findInField(field: DescField, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  switch (field.fieldKind) {
    case "scalar":
    case "message":
      return findInItem(field, value, field.name);
    case "list":
      return findInList(field, value as unknown[]);
    case "map":
      return findInMap(field, value as Record<string, unknown>) ? field.name : undefined;
    case "enum":
      return undefined;
  }
}

function findInList(field: DescField & { fieldKind: "list" }, items: readonly unknown[]): string | undefined {
  for (const [i, item] of items.entries()) {
    const path = findInItem(field, item, `${field.name}[${i}]`);
    if (path !== undefined) return path;
  }
  return undefined;
}

function findInMap(field: DescField & { fieldKind: "map" }, map: Record<string, unknown>): boolean {
  return Object.entries(map).some(([key, value]) => containsKey(key) || findInItem(field, value, "") !== undefined);
}

/** Looks into one value of a field at the path. Names inside untyped values are not part of the path. */
function findInItem(field: DescField, value: unknown, path: string): string | undefined {
  const { message } = field;
  if (!message) return field.scalar === ScalarType.STRING && containsKey(value as string) ? path : undefined;
  if (isUntyped(message)) return isInJson(jsonOf(value as Value)) ? path : undefined;
  if (holdsPlainObject(field)) return isInJson(value as JsonObject) ? (sentName(field, value as JsonObject) ?? path) : undefined;
  const inner = findInMessage(message, value as Message);
  return inner === undefined ? undefined : `${path}.${inner}`;
}

/** The member of the body that contains a key, if the field collects those that the message does not have. */
function sentName(field: DescField, object: JsonObject): string | undefined {
  if (field !== fieldForUnknown(field.parent)) return undefined;
  return Object.keys(object).find((name) => !containsKey(name) && isInJson(object[name] as JsonValue));
}

function isInJson(json: JsonValue): boolean {
  if (typeof json === "string") return containsKey(json);
  if (typeof json !== "object" || json === null) return false;
  if (Array.isArray(json)) return (json as readonly JsonValue[]).some(isInJson);
  const object = json as JsonObject;
  // No character of a key is escaped in JSON text.
  const text = knownJsonText(object);
  if (text !== undefined) return containsKey(text);
  for (const name in object) if (containsKey(name) || isInJson(object[name] as JsonValue)) return true;
  return false;
}

/** The validator may count the characters of texts up to this length without a noticeable delay. */
const LONG_UNITS = 4_096;

/** The fields of a message that can contain long texts, directly or in nested messages; usually none. */
type TextPlan = readonly {
  readonly field: DescField;
  readonly inner: DescMessage | undefined;
  readonly maxCharacters: number;
}[];

const textPlans = new WeakMap<DescMessage, TextPlan>();

/** Replaces a text that was checked: every length that has no rule but a maximum allows it, or a minimum of 1. */
const CHECKED = "x";

/**
 * Returns the request for the validator, which visits every character: texts whose only rule is their length
 * are checked here, and long ones are replaced in a copy.
 */
export function withoutLongTexts<M extends Message>(desc: DescMessage, message: M, path = ""): M {
  const fields = message as unknown as Record<string, unknown>;
  let copy: Record<string, unknown> | undefined;
  for (const { field, inner, maxCharacters } of textPlanOf(desc)) {
    const name = field.localName;
    const value = fields[name];
    if (value === undefined) continue;
    const where = path === "" ? field.name : `${path}.${field.name}`;
    const isList = Array.isArray(value);
    const shorten = (item: unknown, at: string) =>
      inner
        ? withoutLongTexts(inner, item as Message, at)
        : shortText(item as string, at, maxCharacters, isList ? CHECKED.length : LONG_UNITS);
    const short = isList ? shortItems(value, where, shorten) : shorten(value, where);
    if (short === value) continue;
    copy ??= { ...fields };
    copy[name] = short;
  }
  return (copy ?? message) as M;
}

/** The list itself if no item is shortened. */
function shortItems(
  items: readonly unknown[],
  path: string,
  shorten: (item: unknown, at: string) => unknown,
): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [i, item] of items.entries()) {
    const short = shorten(item, `${path}[${i}]`);
    if (short === item) continue;
    copy ??= [...items];
    copy[i] = short;
  }
  return copy ?? items;
}

function shortText(text: string, path: string, max: number, maxUnits: number): string {
  if (text.length <= maxUnits) return text;
  if (text.length > max && charactersOf(text) > max) throw DomainError.ofField(path, tooLong(max));
  return CHECKED;
}

function textPlanOf(desc: DescMessage): TextPlan {
  let plan = textPlans.get(desc);
  if (!plan) {
    // A type may contain itself: then only the texts of the outermost message are removed.
    textPlans.set(desc, []);
    plan = desc.fields.flatMap((field) => {
      if (field.fieldKind === "map" || field.oneof) return [];
      const inner = field.message && textPlanOf(field.message).length > 0 ? field.message : undefined;
      if (!inner && !hasLengthAsOnlyRule(field)) return [];
      return { field, inner, maxCharacters: maxCharactersOf(field) };
    });
    textPlans.set(desc, plan);
  }
  return plan;
}

function hasLengthAsOnlyRule(field: DescField): boolean {
  if (!hasOption(field, fieldRules)) return false;
  const { type, cel } = getOption(field, fieldRules);
  if (type.case === "repeated" && type.value.unique) return false;
  const rules = type.case === "repeated" ? type.value.items : { type, cel };
  if (rules?.type.case !== "string" || rules.cel.length > 0 || maxCharactersOf(field) <= LONG_UNITS) return false;
  const { $typeName, $unknown, maxLen, minLen, wellKnown, ...others } = rules.type.value;
  const isAllowed = maxLen > 0n && minLen <= CHECKED.length && wellKnown.case === undefined;
  return isAllowed && Object.values(others).every((value) => (Array.isArray(value) ? value.length === 0 : !value));
}
