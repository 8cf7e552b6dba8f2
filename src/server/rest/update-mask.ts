import { create, type Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import type { HttpBinding } from "./http-rule.ts";

/** A PATCH changes the fields that its body has; null clears them. */
export function setUpdateMask({ method, template }: HttpBinding, message: Message, body: Buffer): void {
  const fields = message as unknown as Record<string, unknown>;
  if (body.length === 0 || fields.updateMask !== undefined) return;
  const names = Object.keys(JSON.parse(body.toString()) as object);
  const inPath = template.variables.map(({ fieldPath }) => fieldPath);
  const paths = method.input.fields
    .filter(({ name, jsonName }) => names.includes(name) || names.includes(jsonName))
    .map(({ name }) => name)
    .filter((name) => name !== "update_mask" && !inPath.includes(name));
  fields.updateMask = create(FieldMaskSchema, { paths });
}
