import { readFileSync } from "node:fs";
import { create, createFileRegistry, type DescMessage, type FileRegistry, fromBinary, type Message } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The message types and services of a suite, from the output of `buf build`. */
export function readDescriptors(file: string): FileRegistry {
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(file)));
}

export function messageType(registry: FileRegistry, name: string): DescMessage {
  const desc = registry.getMessage(name);
  if (!desc) throw new Error(`the suite has no message ${name}`);
  return desc;
}

/** There is no generated code for the suites, so their messages have no TypeScript types. */
export function createUntyped(desc: DescMessage, fields: object): Message {
  return create(desc, fields as never);
}
