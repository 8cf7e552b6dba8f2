import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import { containsKey } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import type { JsonObject, JsonValue } from "../domain/json.ts";
import { knownJsonText } from "../domain/json-text.ts";
import { jsonOf } from "./plain-values.ts";
import { readField } from "./read-field.ts";
import { holdsPlainObject, isUntyped } from "./untyped-values.ts";

/**
 * An API key belongs only in the Authorization header: a key in a name would be stored, and a key in an id
 * would be logged by databases and proxies. Every text of a request is checked, in every field.
 */
export function refuseKeys(desc: DescMessage, message: Message): void {
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
  return Object.entries(map).some(
    ([key, value]) => containsKey(key) || findInItem(field, value, "") !== undefined,
  );
}

/** Looks into one value of a field at the path. Names inside untyped values are not part of the path. */
function findInItem(field: DescField, value: unknown, path: string): string | undefined {
  const { message } = field;
  if (!message) return field.scalar === ScalarType.STRING && containsKey(value as string) ? path : undefined;
  if (isUntyped(message)) return isInJson(jsonOf(value as Value)) ? path : undefined;
  if (holdsPlainObject(field)) return isInJson(value as JsonValue) ? path : undefined;
  const inner = findInMessage(message, value as Message);
  return inner === undefined ? undefined : `${path}.${inner}`;
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
