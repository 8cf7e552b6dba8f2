import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { run } from "../../src/cli/program.ts";
import type { Shell } from "../../src/cli/shell.ts";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { cleanEnv } from "../support/clean-env.ts";
import { SERVER as VX } from "../support/process.ts";

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };
export type Env = Readonly<Record<string, string>>;

/** `wrapper` is a program that runs the command, such as a shell with limits; `vx` is that of another release. */
export function startVx(args: readonly string[], env: Env, wrapper: readonly string[] = [], vx = VX): ChildProcess {
  const [program = "", ...rest] = [...wrapper, process.execPath, vx, ...args];
  return spawn(program, rest, { env: cleanEnv(env), stdio: ["ignore", "pipe", "pipe"] });
}

/** Waits until a command exits. */
export async function ended(child: ChildProcess): Promise<Ended> {
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, "exit") as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** Runs a command in a process, as a shell does. */
export async function spawnVx(args: readonly string[], env: Env = {}, wrapper: readonly string[] = [], vx = VX): Promise<Ended> {
  return await ended(startVx(args, env, wrapper, vx));
}

let isRunning = false;

type Run = {
  readonly input?: string;
  /** Whether errors go to a terminal. */
  readonly isTerminal?: boolean;
  /** Returns false to close the output, as `| head` does. */
  readonly accepts?: (text: string) => boolean;
};

/** Runs a command in the process of the test: one at a time, which takes a small part of the time of a spawn. */
export async function vx(
  args: readonly string[],
  env: Env = {},
  { input = "", isTerminal = false, accepts }: Run = {},
): Promise<Ended> {
  if (isRunning) throw new Error("another command is running in this process");
  isRunning = true;
  const stdout = new CollectedOutput(accepts);
  const stderr = Object.assign(new CollectedOutput(), { isTTY: isTerminal });
  const shell: Shell = {
    stdin: Readable.from([input]),
    stdout,
    stderr,
    env: cleanEnv(env),
    exit: (code) => {
      shell.exitCode = code;
    },
  };
  try {
    await run(args, shell);
    return { code: Number(shell.exitCode ?? 0), stdout: stdout.text, stderr: stderr.text };
  } finally {
    isRunning = false;
  }
}

class CollectedOutput extends Writable {
  text = "";
  readonly #accepts: (text: string) => boolean;

  constructor(accepts = (_: string) => true) {
    super({ autoDestroy: false });
    this.#accepts = accepts;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.text += chunk.toString();
    done(this.#accepts(chunk.toString()) ? undefined : Object.assign(new Error(), { code: "EPIPE" }));
  }
}

/** The words of a line; quotes join several. */
export function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
}

/** The environment variables with which a command connects to the server. */
export function envOf({ adminUrl }: { readonly adminUrl: string }): Record<string, string> {
  return { VX_ADMIN_URL: adminUrl, VX_ADMIN_TOKEN: OPERATOR_TOKEN };
}

/** The command failed with one line. */
export function refused({ code, stdout, stderr }: Ended, message: RegExp): void {
  expect(stderr).toMatch(message);
  const lines = stderr.trimEnd().split("\n").length;
  expect({ code, stdout, lines }).toEqual({ code: 1, stdout: "", lines: 1 });
}
