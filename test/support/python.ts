import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Made once and kept; git ignores it. */
const FOLDER = resolve(".venv");
const STAMP = join(FOLDER, "requirements.txt");
const REQUIREMENTS = "test/python/requirements.txt";

/** Where the stubs for gRPC are made. */
export const STUBS = join(FOLDER, "stubs");

/** Makes a Python with the clients in it; tells why if that cannot be. */
export function preparePython(): string | undefined {
  const wanted = readFileSync(REQUIREMENTS, "utf8");
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === wanted) return undefined;
  const steps = [
    ["python3", "-m", "venv", "--clear", FOLDER],
    [join(FOLDER, "bin/python"), "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS],
  ] as const;
  for (const [command, ...args] of steps) {
    const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8", timeout: 240_000 });
    if (status !== 0) return `${command} ${args.join(" ")}: ${error?.message ?? stderr.trim().slice(-500)}`;
  }
  mkdirSync(STUBS, { recursive: true });
  writeFileSync(STAMP, wanted);
  return undefined;
}

/** The environment in which "python" is the one with the clients. */
export function pythonEnv(env: Record<string, string>): NodeJS.ProcessEnv {
  const path = `${join(FOLDER, "bin")}:${process.env.PATH ?? ""}`;
  return { ...process.env, PATH: path, PYTHONPATH: STUBS, PYTHONDONTWRITEBYTECODE: "1", ...env };
}
