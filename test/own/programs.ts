// Installs the clients of this repository as their users do. Each function returns the reason if that fails.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CLIENTS } from "../support/installed.ts";
import { createVenv, problemOf } from "../support/python.ts";

/** Folders with nothing but an installed client. Kept for the next run; git ignores them. */
export const FOLDER = join(CLIENTS, "own");

/** The examples of a README in a language. */
export function examplesOf(readme: string, language: string): string[] {
  const blocks = [...readFileSync(readme, "utf8").matchAll(/```(\w+)\n([\s\S]*?)```/g)];
  return blocks.filter(([, name]) => name === language).map(([, , code]) => code as string);
}

export const TYPESCRIPT = join(FOLDER, "typescript");

/** Packs the npm package and installs the tarball, with the other packages that are named. */
export function prepareTypeScript(
  folder = TYPESCRIPT,
  others: Record<string, string> = {},
): string | undefined {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const pack = ["pack", "--silent", "--pack-destination", folder];
  const problem = inFolder("clients/typescript", "npm", ...pack);
  if (problem !== undefined) return problem;
  const { name, version } = JSON.parse(readFileSync("clients/typescript/package.json", "utf8"));
  const dependencies = { ...others, [name]: `file:${name}-${version}.tgz` };
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ private: true, type: "module", dependencies }),
  );
  cpSync("clients/typescript/test", folder, { recursive: true });
  const compilerOptions = {
    target: "es2022",
    module: "nodenext",
    lib: ["es2022", "dom", "dom.asynciterable"],
    types: ["node"],
    typeRoots: [resolve("node_modules/@types")],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    outDir: "compiled",
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  return inFolder(folder, "npm", "install", "--no-audit", "--no-fund", "--prefer-offline");
}

/** The oldest Node that the npm package supports, from npm. Returns its path, or undefined without npm's registry. */
export function oldestNode(): string | undefined {
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(FOLDER, "node18");
  mkdirSync(folder, { recursive: true });
  const install = ["install", "--prefix", folder, "--no-audit", "--no-fund", "--prefer-offline"];
  const problem = problemOf("npm", ...install, `${name}@18.20.8`);
  return problem === undefined ? join(folder, "node_modules", name, "bin/node") : undefined;
}

export const PYTHON = join(FOLDER, "python");

/** Builds the wheel and installs it, with the newest libraries that it allows. */
export function preparePython(
  folder = PYTHON,
  requirements = "test/own/python/requirements.txt",
): string | undefined {
  const problem = createVenv(join(folder, "venv"), requirements);
  if (problem !== undefined) return problem;
  const wheels = join(folder, "wheels");
  rmSync(wheels, { recursive: true, force: true });
  const pip = [
    join(folder, "venv/bin/python"),
    "-m",
    "pip",
    "--quiet",
    "--disable-pip-version-check",
  ] as const;
  const build = [
    "wheel",
    "--no-build-isolation",
    "--no-deps",
    "--wheel-dir",
    wheels,
    resolve("clients/python"),
  ];
  const problemOfBuild = problemOf(...pip, ...build);
  if (problemOfBuild !== undefined) return problemOfBuild;
  const install = ["install", "--no-deps", "--force-reinstall", ...globSync(join(wheels, "*.whl"))];
  return problemOf(...pip, ...install) ?? problemOf(...pip, "check");
}

export const GO = join(FOLDER, "go");

/** Writes a module that uses the client of this repository, as after a `go get`. */
export function prepareGo(folder = GO): string | undefined {
  mkdirSync(folder, { recursive: true });
  const { go } = JSON.parse(readFileSync("clients/names.json", "utf8"));
  const version = /^go (.+)$/m.exec(readFileSync("clients/go/go.mod", "utf8"))?.[1];
  writeFileSync(
    join(folder, "go.mod"),
    `module example\n\ngo ${version}\n\nrequire ${go} v0.0.0\n\nreplace ${go} => ${resolve("clients/go")}\n`,
  );
  const [example = ""] = examplesOf("clients/go/README.md", "go");
  writeFileSync(join(folder, "main.go"), example);
  return problemOf("go", "version") ?? inFolder(folder, "go", "mod", "tidy");
}

export const JAVA = join(FOLDER, "java");

/** Generates the stubs of the example for Java and compiles it. */
export function prepareJava(): string | undefined {
  const compile = ["compile", "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"];
  return (
    problemOf("mvn", "-version") ??
    copyExample("java", JAVA) ??
    inFolder(JAVA, "mvn", "--quiet", "--batch-mode", ...compile)
  );
}

export const RUST = join(FOLDER, "rust");

/** Generates the stubs of the example for Rust and compiles it. */
export function prepareRust(): string | undefined {
  return (
    problemOf("cargo", "--version") ??
    copyExample("rust", RUST) ??
    inFolder(RUST, "cargo", "build", "--quiet", "--locked")
  );
}

/** Copies an example, with the .proto files and those that they import. */
function copyExample(name: string, folder: string): string | undefined {
  mkdirSync(folder, { recursive: true });
  cpSync(join("examples", name), folder, { recursive: true, preserveTimestamps: true });
  return (
    problemOf("npm", "run", "generate:protos") ??
    problemOf("buf", "export", ".", "--path", "proto/vx/v1", "--output", join(folder, "proto"))
  );
}

/** Runs a command in the folder. Returns the reason if it fails. */
export function inFolder(folder: string, command: string, ...args: string[]): string | undefined {
  return problemOf("env", "-C", folder, command, ...args);
}
