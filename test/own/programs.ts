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

/**
 * Runs the commands of a README that build a client in this checkout, and those that install it in a project. `probe` is a command
 * that needs the registry: returns the reason if it fails. If the commands fail, throws.
 */
function installByReadme(
  readme: string,
  project: string,
  probe: readonly [string, ...string[]],
  path = process.env.PATH,
): string | undefined {
  const problem = problemOf(...probe);
  if (problem !== undefined) return problem;
  const commands = examplesOf(readme, "sh").map((code) =>
    code
      .replaceAll("/path/to/vx/dist", project)
      .replaceAll("/path/to/vx", resolve("."))
      .replace("mkdir -p dist && ", "")
      .replace(/ dist$/m, ` ${project}`),
  );
  const folders = [...commands.slice(1).map(() => "."), project];
  for (const [i, command] of commands.entries()) {
    const failure = inFolder(folders[i] ?? ".", "env", `PATH=${path}`, "sh", "-ec", command);
    if (failure !== undefined) throw new Error(`${readme}: ${failure}`);
  }
  return undefined;
}

export const TYPESCRIPT = join(FOLDER, "typescript");

/** Installs the npm package, with the other packages that are named. */
export function prepareTypeScript(folder = TYPESCRIPT, others: Record<string, string> = {}): string | undefined {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module", dependencies: others }));
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
  return installByReadme("clients/typescript/README.md", folder, ["npm", "view", "commander", "version"]);
}

export const PYTHON = join(FOLDER, "python");

/** Installs the wheel beside the libraries of the requirements. */
export function preparePython(folder = PYTHON, requirements = "test/own/python/requirements.txt"): string | undefined {
  const problem = createVenv(join(folder, "venv"), requirements);
  if (problem !== undefined) return problem;
  const pip = [join(folder, "venv/bin/python"), "-m", "pip", "--quiet"] as const;
  for (const wheel of globSync(join(folder, "vx_client-*.whl"))) rmSync(wheel);
  return (
    problemOf(...pip, "uninstall", "--yes", "vx-client") ??
    installByReadme(
      "clients/python/README.md",
      folder,
      [...pip, "download", "--no-deps", "--dest", folder, "hatchling"],
      `${join(folder, "venv/bin")}:${process.env.PATH}`,
    ) ??
    problemOf(...pip, "check")
  );
}

export const GO = join(FOLDER, "go");

/** Writes a module that uses the client. */
export function prepareGo(folder = GO): string | undefined {
  mkdirSync(folder, { recursive: true });
  const version = /^go (.+)$/m.exec(readFileSync("clients/go/go.mod", "utf8"))?.[1];
  writeFileSync(join(folder, "go.mod"), `module example\n\ngo ${version}\n`);
  const [example = ""] = examplesOf("clients/go/README.md", "go");
  writeFileSync(join(folder, "main.go"), example);
  return installByReadme("clients/go/README.md", folder, ["go", "list", "-m", "connectrpc.com/connect@latest"]);
}

export const JAVA = join(FOLDER, "java");

/** Generates the stubs of the example for Java and compiles it. */
export function prepareJava(): string | undefined {
  const compile = ["compile", "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"];
  return (
    problemOf("mvn", "-version") ?? copyExample("java", JAVA) ?? inFolder(JAVA, "mvn", "--quiet", "--batch-mode", ...compile)
  );
}

export const RUST = join(FOLDER, "rust");

/** Generates the stubs of the example for Rust and compiles it. */
export function prepareRust(): string | undefined {
  return problemOf("cargo", "--version") ?? copyExample("rust", RUST) ?? inFolder(RUST, "cargo", "build", "--quiet", "--locked");
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
