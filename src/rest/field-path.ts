import type { DescField, DescMessage } from "@bufbuild/protobuf";

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
