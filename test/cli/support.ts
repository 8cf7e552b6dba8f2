import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { run } from "../../src/cli/program.ts";
import type { Shell } from "../../src/cli/shell.ts";
import { cleanEnv } from "../support/clean-env.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { closeIdleConnections } from "../support/process.ts";

export const VX: string = fileURLToPath(new URL("../../src/vx.js", import.meta.url));

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };
export type Env = Readonly<Record<string, string>>;

/** `wrapper` is a program that runs the command, such as a shell with limits; `vx` is that of another release. */
export function startVx(
  args: readonly string[],
  env: Env,
  wrapper: readonly string[] = [],
  vx = VX,
): ChildProcess {
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
export async function spawnVx(
  args: readonly string[],
  env: Env = {},
  wrapper: readonly string[] = [],
  vx = VX,
): Promise<Ended> {
  return await ended(startVx(args, env, wrapper, vx));
}

let isRunning = false;

type Run = {
  readonly input?: string;
  /** Whether errors go to a terminal. */
  readonly isTerminal?: boolean;
};

/** Runs a command in the process of the test: one at a time, which takes a small part of the time of a spawn. */
export async function vx(
  args: readonly string[],
  env: Env = {},
  { input = "", isTerminal = false }: Run = {},
): Promise<Ended> {
  if (isRunning) throw new Error("another command is running in this process");
  isRunning = true;
  const stdout = new CollectedOutput();
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

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

export type RunningServer = {
  /** The environment variables with which a command connects to the server. */
  readonly env: Env;
  /** Of the public listener. */
  readonly url: string;
  readonly database: TestDatabase;
  stop(): Promise<void>;
};

/** Runs `vx serve` in a process. */
export async function startServer(): Promise<RunningServer> {
  const database = await createTestDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), "vx-test-cli-"));
  const env = { VX_DATA_DIR: dataDir, VX_ADMIN_PORT: String(await freePort()) };
  const child = startVx(["serve"], { ...env, PORT: "0", DATABASE_URL: database.url, VX_LOG_LEVEL: "warn" });
  const exit = once(child, "exit");
  const stderr = text(child.stderr as NodeJS.ReadableStream);
  const url = await ready(child, stderr);
  return {
    env,
    url,
    database,
    stop: async () => {
      closeIdleConnections();
      child.kill("SIGTERM");
      const [code] = await exit;
      await database.drop();
      rmSync(dataDir, { recursive: true, force: true });
      if (code !== 0) throw new Error(`the server ended with ${code}: ${await stderr}`);
    },
  };
}

async function ready(child: ChildProcess, stderr: Promise<string>): Promise<string> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  for await (const line of lines) {
    const url = /^vx ready on (\S+)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stdout?.resume();
    return url;
  }
  throw new Error(`the server did not start: ${await stderr}`);
}

/** A port on which nothing listens at the moment. */
export async function freePort(): Promise<number> {
  const server = await listen(() => undefined);
  const { port } = server.address() as AddressInfo;
  await closeServer(server);
  return port;
}

export async function listen(onConnection: Parameters<typeof createServer>[1] & {}): Promise<Server> {
  const server = createServer(onConnection).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

export async function closeServer(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
