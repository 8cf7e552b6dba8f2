import { spawn } from "node:child_process";
import { identity, type ServerUser } from "./server-user.ts";

export type Outcome = { readonly ok: boolean; readonly output: string };

/**
 * Leaves out the server's environment: its PG* variables would configure PostgreSQL, and it may have secrets.
 */
export function programEnvironment(): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = {
    PATH: process.env.PATH ?? "/usr/bin:/bin",
    LC_ALL: "C",
    TZ: "UTC",
  };
  for (const name of ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"]) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

/** Runs a program until it exits. Never rejects: a program that cannot be started is a failed outcome. */
export async function runProgram(user: ServerUser, file: string, args: readonly string[], input = ""): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  let output = "";
  try {
    // The user may have no access to the current folder, and then the shell that initdb starts prints errors.
    const options = { cwd: "/", env: programEnvironment(), ...identity(user) };
    const child = spawn(file, args, { ...options, stdio: ["pipe", "pipe", "pipe"] });
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-16_384);
    };
    // A program that exits before it reads all input reports the reason in its output.
    child.stdin.on("error", () => undefined).end(input);
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.once("error", (error) => resolve({ ok: false, output: error.message }));
    child.once("close", (code, signal) => {
      resolve({ ok: code === 0, output: signal === null ? output : `${output}\nended by ${signal}` });
    });
  } catch (error) {
    resolve({ ok: false, output: String(error) });
  }
  return promise;
}

/** The last lines of a program's output, joined to one line. */
export function lastLines(output: string, count = 5): string {
  const lines = output.split("\n").map((line) => line.trim());
  return lines
    .filter((line) => line !== "")
    .slice(-count)
    .join(" / ");
}
