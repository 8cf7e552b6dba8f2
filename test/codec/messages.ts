import { readdirSync } from "node:fs";
import type { DescFile, DescMessage } from "@bufbuild/protobuf";
import * as wkt from "@bufbuild/protobuf/wkt";
import { testFile } from "../rest/descriptors.ts";

const GEN = new URL("../../gen/", import.meta.url);
const generated = await Promise.all(
  readdirSync(GEN, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith("_pb.js"))
    .sort()
    .map((name) => import(new URL(name, GEN).href) as Promise<object>),
);

const SCALARS = "double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes".split(
  " ",
);
const KEYS = SCALARS.filter((name) => !/double|float|bytes/.test(name));
const WELL_KNOWN =
  "Timestamp Duration FieldMask Empty Struct Value ListValue DoubleValue FloatValue Int64Value UInt64Value Int32Value UInt32Value BoolValue StringValue BytesValue"
    .split(" ")
    .map((name) => `google.protobuf.${name}`);

const values = [...SCALARS, "Color", "Tree", ...WELL_KNOWN];
const named = (prefix: string, type: string) => `${type} ${prefix}_${type.split(".").at(-1)?.toLowerCase()}`;

/** All kinds of fields with all types. */
const TYPES = {
  Tree: ["string name", "Tree left", "repeated Tree children", "map<string,Tree> by_name"],
  Plain: values.map((type) => named("plain", type)),
  Optional: [...SCALARS, "Color"].map((type) => `optional ${named("maybe", type)}`),
  Lists: values.map((type) => `repeated ${named("list_of", type)}`),
  Maps: [
    ...KEYS.map((type) => `map<${type},string> keyed_by_${type}`),
    ...values.map((type) => `map<string,${type}> map_of_${type.split(".").at(-1)?.toLowerCase()}`),
  ],
  Choice: [...values.map((type) => `choice: ${named("one", type)}`), "choice: google.protobuf.NullValue nothing"],
  Names: ["string snake_case", "string camelCase", "string _leading", "string with_1_digit", "string __proto__"],
};
export const everything = testFile(TYPES);

/** All message types that the .proto files define or use, and the well-known types. */
export const messageTypes: readonly DescMessage[] = [...generated, wkt]
  .flatMap((module) => Object.values(module) as unknown[])
  .filter(isFile)
  .flatMap(({ messages }) => messages);

export const testTypes: readonly DescMessage[] = Object.keys(TYPES).map(everything.message);

function isFile(value: unknown): value is DescFile {
  // Compiler and feature descriptors describe .proto files and are not part of an API.
  const known = value as Partial<DescFile> | undefined;
  return known?.kind === "file" && !/compiler|feature/.test(known.name ?? "");
}
