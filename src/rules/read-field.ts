import type { DescField, Message } from "@bufbuild/protobuf";

/** The value of a field; undefined if it has presence and is not set. */
export function readField(field: DescField, message: Message): unknown {
  const fields = message as unknown as Readonly<Record<string, unknown>>;
  if (!field.oneof) return fields[field.localName];
  const group = fields[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return group.case === field.localName ? group.value : undefined;
}
