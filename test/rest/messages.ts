import type { DescFile, DescMessage } from "@bufbuild/protobuf";
import * as wkt from "@bufbuild/protobuf/wkt";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.js";
import { file_vx_admin_v1_admin } from "../../gen/vx/admin/v1/admin_pb.js";
import { file_vx_v1_generate } from "../../gen/vx/v1/generate_pb.js";
import { file_vx_v1_key } from "../../gen/vx/v1/key_pb.js";
import { file_vx_v1_ledger } from "../../gen/vx/v1/ledger_pb.js";
import { file_vx_v1_me } from "../../gen/vx/v1/me_pb.js";
import { file_vx_v1_model } from "../../gen/vx/v1/model_pb.js";
import { testFile } from "./descriptors.ts";

const SCALARS =
  "double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes".split(
    " ",
  );
const KEYS = SCALARS.filter((name) => !/double|float|bytes/.test(name));
const WELL_KNOWN =
  "Timestamp Duration FieldMask Empty Struct Value ListValue DoubleValue FloatValue Int64Value UInt64Value Int32Value UInt32Value BoolValue StringValue BytesValue"
    .split(" ")
    .map((name) => `google.protobuf.${name}`);

const values = [...SCALARS, "Color", "Tree", ...WELL_KNOWN];
const named = (prefix: string, type: string) => `${type} ${prefix}_${type.split(".").at(-1)?.toLowerCase()}`;

/** Each kind of field with each type. */
export const everything = testFile({
  Tree: ["string name", "Tree left", "repeated Tree children", "map<string,Tree> by_name"],
  Plain: values.map((type) => named("plain", type)),
  Optional: [...SCALARS, "Color"].map((type) => `optional ${named("maybe", type)}`),
  Lists: values.map((type) => `repeated ${named("list_of", type)}`),
  Maps: [
    ...KEYS.map((type) => `map<${type},string> keyed_by_${type}`),
    ...values.map((type) => `map<string,${type}> map_of_${type.split(".").at(-1)?.toLowerCase()}`),
  ],
  Choice: [
    ...values.map((type) => `choice: ${named("one", type)}`),
    "choice: google.protobuf.NullValue nothing",
  ],
  Names: [
    "string snake_case",
    "string camelCase",
    "string _leading",
    "string with_1_digit",
    "string __proto__",
  ],
});

/** Every message type the product prints or reads, the well-known ones, and those of this test. */
export const messageTypes: readonly DescMessage[] = [
  file_google_rpc_error_details,
  file_vx_admin_v1_admin,
  file_vx_v1_generate,
  file_vx_v1_key,
  file_vx_v1_ledger,
  file_vx_v1_me,
  file_vx_v1_model,
  ...Object.values(wkt as Record<string, unknown>).filter(isFile),
].flatMap(({ messages }) => messages);

export const testTypes: readonly DescMessage[] = Object.keys({
  Tree: 0,
  Plain: 0,
  Optional: 0,
  Lists: 0,
  Maps: 0,
  Choice: 0,
  Names: 0,
}).map(everything.message);

function isFile(value: unknown): value is DescFile {
  // Compiler and feature descriptors are about .proto files, nothing an API sends.
  const known = value as Partial<DescFile> | undefined;
  return known?.kind === "file" && !/compiler|feature/.test(known.name ?? "");
}
