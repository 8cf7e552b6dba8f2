// Writes gen/openapi.json from the descriptors and from the comments of the .proto files, which generated code does not
// contain, and gen/openapi-models.json with the places of it that depend on the models. With "-" it prints the document instead.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { BUILT_IN_MODELS } from "../src/models/built-in.ts";
import { type ExampleValues, exampleValues } from "../src/server/pages/openapi-page.ts";
import { DEVELOPER_SERVICES } from "../src/server/services.ts";
import { commentsOf } from "./openapi/comments.ts";
import { openApiDocument } from "./openapi/document.ts";
import { placeholdersOf, placesOf } from "./openapi/places.ts";

const set = execFileSync("buf", ["build", "proto", "--as-file-descriptor-set", "-o", "-"], {
  maxBuffer: 1 << 26,
});
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const commentOf = commentsOf(fromBinary(FileDescriptorSetSchema, set));
const values = exampleValues(BUILT_IN_MODELS);
const documentWith = (exampleValues: ExampleValues) =>
  openApiDocument({ exampleValues, services: DEVELOPER_SERVICES, version, commentOf });
const textOf = (json: unknown) => `${JSON.stringify(json, null, 2)}\n`;
const text = textOf(documentWith(values));
if (process.argv[2] === "-") process.stdout.write(text);
else {
  writeFileSync("gen/openapi.json", text);
  writeFileSync("gen/openapi-models.json", textOf(placesOf(documentWith(placeholdersOf(values)), values)));
}
