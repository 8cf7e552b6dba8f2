import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isWellKnown } from "./well-known.ts";

/** The fields along a dotted path, such as "message.content". Proto and JSON names are both accepted. */
export function findFieldPath(desc: DescMessage, path: string): DescField[] {
  const fields: DescField[] = [];
  let inside: DescMessage | undefined = desc;
  for (const name of path.split(".")) {
    const field: DescField | undefined = inside?.fields.find(
      (one) => one.name === name || one.jsonName === name,
    );
    if (!field) throw new Error(`${desc.typeName} has no field "${path}"`);
    fields.push(field);
    inside = field.fieldKind === "message" ? field.message : undefined;
  }
  return fields;
}

/**
 * Whether text can represent the field: maps and messages without a text form cannot be written in an
 * address.
 */
export function isParameter(field: DescField): boolean {
  return field.fieldKind !== "map" && (field.message === undefined || isWellKnown(field.message));
}
