import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { containsKey } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import { isUntyped } from "./untyped-values.ts";

/**
 * An API key belongs only in the Authorization header: a key in a name would be stored, and a key in an id
 * would be logged by databases and proxies. Every text of a request is checked, in every field.
 */
export function refuseKeys(desc: DescMessage, message: Message): void {
  const field = findInMessage(desc, message);
  if (field === undefined) return;
  throw DomainError.ofField(field, "must not contain an API key. If others can see the key, revoke it.");
}

/** The path of the first field that contains a key. */
function findInMessage(desc: DescMessage, message: Message): string | undefined {
  for (const field of desc.fields) {
    const path = findInField(field, readField(field, message as unknown as Record<string, unknown>));
    if (path !== undefined) return path;
  }
  return undefined;
}

function readField(field: DescField, message: Record<string, unknown>): unknown {
  if (!field.oneof) return message[field.localName];
  const group = message[field.oneof.localName] as { case?: string; value?: unknown };
  return group.case === field.localName ? group.value : undefined;
}

function findInField(field: DescField, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  switch (field.fieldKind) {
    case "scalar":
      return field.scalar === ScalarType.STRING && containsKey(value as string) ? field.name : undefined;
    case "message":
      return within(field, findInMessage(field.message, value as Message));
    case "list":
      return findInList(field, value as unknown[]);
    case "map":
      return findInMap(field, value as Record<string, unknown>) ? field.name : undefined;
    case "enum":
      return undefined;
  }
}

function findInList(field: DescField & { fieldKind: "list" }, items: readonly unknown[]): string | undefined {
  if (field.listKind === "enum" || (field.listKind === "scalar" && field.scalar !== ScalarType.STRING))
    return undefined;
  for (const [i, item] of items.entries()) {
    const place = `${field.name}[${i}]`;
    if (field.listKind === "scalar") {
      if (containsKey(item as string)) return place;
      continue;
    }
    const path = findInMessage(field.message, item as Message);
    if (path !== undefined) return `${place}.${path}`;
  }
  return undefined;
}

function findInMap(field: DescField & { fieldKind: "map" }, map: Record<string, unknown>): boolean {
  return Object.entries(map).some(([key, value]) => {
    if (containsKey(key)) return true;
    if (field.mapKind === "message") return findInMessage(field.message, value as Message) !== undefined;
    return field.mapKind === "scalar" && field.scalar === ScalarType.STRING && containsKey(value as string);
  });
}

/** Names inside a google.protobuf.Value are not the caller's, so the path ends at the field. */
function within({ name, message }: DescField, path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  return message && isUntyped(message) ? name : `${name}.${path}`;
}
