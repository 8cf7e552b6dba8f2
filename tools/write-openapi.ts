// Writes gen/openapi.json from the descriptors and from the comments of the .proto files, which generated
// code does not contain. With "-" it prints the document instead.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { DEVELOPER_SERVICES } from "../src/api/services.ts";
import { BUILT_IN_MODELS, exampleModels } from "../src/models/built-in.ts";
import { commentsOf } from "./openapi/comments.ts";
import { openApiDocument } from "./openapi/document.ts";

const set = execFileSync("buf", ["build", "proto", "--as-file-descriptor-set", "-o", "-"], {
  maxBuffer: 1 << 26,
});
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const document = openApiDocument({
  exampleModels: exampleModels(BUILT_IN_MODELS),
  services: DEVELOPER_SERVICES,
  version,
  commentOf: commentsOf(fromBinary(FileDescriptorSetSchema, set)),
});
const text = `${JSON.stringify(document, null, 2)}\n`;
if (process.argv[2] === "-") process.stdout.write(text);
else writeFileSync("gen/openapi.json", text);
