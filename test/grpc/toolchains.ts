import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { problemOf } from "../support/python.ts";

/** Generated stubs and built clients. Kept for the next run; git ignores it. */
const FOLDER = resolve(".clients/grpc");

/** A program that makes the calls of one library, or the reason why it cannot be built. */
export type Program = { readonly command: readonly string[] } | { readonly problem: string };

/** Google's client for Node is a devDependency, and its stubs are in gen. */
export function prepareNode(): Program {
  return { command: [process.execPath, resolve("test/grpc/node/client.ts")] };
}

export function prepareGo(): Program {
  const folder = sourcesOf("go");
  const protos = [resolve("."), "--include-imports", "--path", resolve("proto/vx/v1")];
  const problem =
    problemOf("go", "version") ??
    deriveImports() ??
    inFolder(folder, "buf", "generate", ...protos, "--template", "buf.gen.yaml") ??
    inFolder(folder, "go", "build", "-o", "client", ".");
  return problem === undefined ? { command: [join(folder, "client")] } : { problem };
}

export function prepareJava(): Program {
  const folder = sourcesOf("java");
  const compile = ["compile", "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"];
  const problem =
    problemOf("mvn", "-version") ?? exportProtos(folder) ?? inFolder(folder, "mvn", "--quiet", "--batch-mode", ...compile);
  if (problem !== undefined) return { problem };
  const libraries = readFileSync(join(folder, "target/classpath"), "utf8").trim();
  return { command: ["java", "-cp", [join(folder, "target/classes"), libraries].join(delimiter), "Client"] };
}

export function prepareRust(): Program {
  const folder = sourcesOf("rust");
  const problem =
    problemOf("cargo", "--version") ?? exportProtos(folder) ?? inFolder(folder, "cargo", "build", "--quiet", "--locked");
  return problem === undefined ? { command: [join(folder, "target/debug/client")] } : { problem };
}

/** A copy of the client's folder, in which stubs and builds are written. */
function sourcesOf(language: string): string {
  const folder = join(FOLDER, language);
  mkdirSync(folder, { recursive: true });
  cpSync(join("test/grpc", language), folder, { recursive: true });
  return folder;
}

/** The .proto files with their imports, for generators that read folders. */
function exportProtos(folder: string): string | undefined {
  const output = join(folder, "proto");
  return deriveImports() ?? problemOf("buf", "export", ".", "--path", "proto/vx/v1", "--output", output);
}

/** Writes the imported .proto that a fresh checkout does not have. */
function deriveImports(): string | undefined {
  return problemOf("npm", "run", "generate:protos");
}

/** Runs a command in the folder. Returns the reason if it fails. */
function inFolder(folder: string, command: string, ...args: string[]): string | undefined {
  return problemOf("env", "-C", folder, command, ...args);
}
