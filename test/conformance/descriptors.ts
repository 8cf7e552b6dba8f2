import { readFileSync } from "node:fs";
import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  type Message,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The message types and services of a suite, as `buf build` wrote them. */
export function readDescriptors(file: string): FileRegistry {
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(file)));
}

export function messageType(registry: FileRegistry, name: string): DescMessage {
  const desc = registry.getMessage(name);
  if (!desc) throw new Error(`the suite has no message ${name}`);
  return desc;
}

/** Nothing is generated for the suites, so their messages have no TypeScript types of their own. */
export function createUntyped(desc: DescMessage, fields: object): Message {
  return create(desc, fields as never);
}
