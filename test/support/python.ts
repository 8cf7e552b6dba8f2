import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The environment of the gRPC and OpenAI clients. Created once and kept; ignored by git. */
const FOLDER = resolve(".venv");

/** The folder of the generated gRPC stubs. */
export const STUBS = join(FOLDER, "stubs");

const UV = "uv==0.13.9";

/** Installs the Python clients. Returns the reason if that fails. */
export function preparePython(): string | undefined {
  const problem = createVenv(FOLDER, "test/python/requirements.txt");
  if (problem === undefined) mkdirSync(STUBS, { recursive: true });
  return problem;
}

/**
 * Creates a virtual environment with the requirements, unless it exists. Returns the reason if that fails.
 */
export function createVenv(folder: string, requirements: string): string | undefined {
  const stamp = join(folder, "requirements.txt");
  const wanted = readFileSync(requirements, "utf8");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return undefined;
  const python = join(folder, "bin/python");
  const pip = [python, "-m", "pip", "install", "--quiet"] as const;
  const uv = [join(folder, "bin/uv"), "pip", "install", "--quiet", "--python", python] as const;
  const problem =
    problemOf("python3", "-m", "venv", "--clear", folder) ??
    problemOf(...pip, UV) ??
    // uv takes a tenth of the time, but does not read the settings of pip.
    (problemOf(...uv, "--requirement", requirements) && problemOf(...pip, "--requirement", requirements));
  if (problem === undefined) writeFileSync(stamp, wanted);
  return problem;
}

/** Runs a command. Returns the reason if it fails. */
export function problemOf(command: string, ...args: string[]): string | undefined {
  const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8", timeout: 600_000 });
  if (status === 0) return undefined;
  return `${command} ${args.join(" ")}: ${error?.message ?? stderr.trim().slice(-500)}`;
}

/** The environment in which "python" has the clients installed. */
export function pythonEnv(env: Record<string, string>, folder = FOLDER): NodeJS.ProcessEnv {
  const path = `${join(folder, "bin")}:${process.env.PATH ?? ""}`;
  return { ...process.env, PATH: path, PYTHONPATH: `${STUBS}:${resolve("test/python")}`, PYTHONDONTWRITEBYTECODE: "1", ...env };
}
