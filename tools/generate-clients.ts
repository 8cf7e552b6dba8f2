// Writes the generated code of the clients for Python and Go: npm run generate:clients. Needs Python and Go with their
// registries; without one of them, prints which code was not written. With --check, fails if the code was not fresh.
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** Also the environment of the tests of the wheel. */
const VENV = resolve(".clients/own/python/venv");
const REQUIREMENTS = "test/own/python/requirements.txt";

/** The input of clients/buf.gen.python.yaml. */
const PYTHON_IMAGE = ".clients/python-messages.binpb";

writePythonImage();

const LANGUAGES = [
  {
    name: "Python",
    code: "clients/python/src/vx/_messages/*_pb2*",
    template: "clients/buf.gen.python.yaml",
    prepare: [
      ["python3", "-m", "venv", VENV],
      [join(VENV, "bin/pip"), "install", "--quiet", "--requirement", REQUIREMENTS],
    ],
    path: join(VENV, "bin"),
  },
  {
    name: "Go",
    code: "clients/go/gen/**/*.go",
    template: "clients/buf.gen.go.yaml",
    prepare: [["go", "version"]],
    path: "",
  },
] as const;

for (const { name, code, template, prepare, path } of LANGUAGES) {
  const before = digestOf(code);
  const env = { ...process.env, PATH: `${path}${delimiter}${process.env.PATH}` };
  const commands = [...prepare, ["buf", "generate", "--template", template]];
  const failed = commands.find(([command = "", ...args]) => spawnSync(command, args, { env }).status !== 0);
  if (failed) console.error(`SKIPPED: the code of the client for ${name} was not generated: ${failed.join(" ")}`);
  else if (process.argv.includes("--check") && digestOf(code) !== before) {
    console.error(`The code of the client for ${name} was not fresh; it is now. Commit it.`);
    process.exitCode = 1;
  }
}

function digestOf(pattern: string): string {
  const files = globSync(pattern).sort();
  return hash("sha256", files.map((file) => `${file}\n${readFileSync(file, "utf8")}`).join("\n"));
}

/**
 * The messages of the Python client have names of their own. With those of the .proto files, a process could not also load stubs
 * that its author generated: protobuf registers each file and each message once, and Python finds each module in one place.
 */
function writePythonImage(): void {
  mkdirSync(dirname(PYTHON_IMAGE), { recursive: true });
  const build = spawnSync("buf", ["build", ".", "--path", "proto/vx/v1", "--output", PYTHON_IMAGE]);
  if (build.status !== 0) throw new Error(`buf build: ${build.stderr}`);
  const set = fromBinary(FileDescriptorSetSchema, readFileSync(PYTHON_IMAGE));
  const file = (path: string) => path.replace(/^vx\/v1\//, "vx/_messages/");
  const type = (name: string) => name.replace(/^\.vx\.v1\./, ".vx.client.v1.");
  const renameIn = (message: DescriptorProto): void => {
    // Fields of scalars have no name of a type, not even an empty one.
    for (const field of message.field) if (field.typeName) field.typeName = type(field.typeName);
    message.nestedType.forEach(renameIn);
  };
  for (const one of set.file) {
    one.name = file(one.name);
    one.dependency = one.dependency.map(file);
    if (one.package === "vx.v1") one.package = "vx.client.v1";
    one.messageType.forEach(renameIn);
    for (const method of one.service.flatMap((service) => service.method)) {
      method.inputType = type(method.inputType);
      method.outputType = type(method.outputType);
    }
  }
  writeFileSync(PYTHON_IMAGE, toBinary(FileDescriptorSetSchema, set));
}
