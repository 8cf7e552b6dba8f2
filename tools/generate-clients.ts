// Writes the generated code of the clients for Python and Go: npm run generate:clients. Needs Python and Go with their
// registries; without one of them, prints which code was not written. With --check, fails if the code was not fresh.
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";

/** Also the environment of the tests of the wheel. */
const VENV = resolve(".clients/own/python/venv");
const REQUIREMENTS = "test/own/python/requirements.txt";

const LANGUAGES = [
  {
    name: "Python",
    code: "clients/python/src/vx/v1/*_pb2*",
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
  if (failed)
    console.error(`SKIPPED: the code of the client for ${name} was not generated: ${failed.join(" ")}`);
  else if (process.argv.includes("--check") && digestOf(code) !== before) {
    console.error(`The code of the client for ${name} was not fresh; it is now. Commit it.`);
    process.exitCode = 1;
  }
}

function digestOf(pattern: string): string {
  const files = globSync(pattern).sort();
  return hash("sha256", files.map((file) => `${file}\n${readFileSync(file, "utf8")}`).join("\n"));
}
