import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isWellKnown } from "./well-known.ts";

/** The fields that a dotted name leads through: "message.content". Proto and JSON names are both understood. */
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

/** Whether a text can stand for the field: maps and messages without such a form cannot be written in an address. */
export function isParameter(field: DescField): boolean {
  return field.fieldKind !== "map" && (field.message === undefined || isWellKnown(field.message));
}
