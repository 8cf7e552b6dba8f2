import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import type { Load } from "./load.ts";
import { Unavailable } from "./part.ts";

/** The fields of Spec in bench/clients/load/main.go. */
type Spec = {
  readonly Protocol: "http" | "grpc";
  readonly Address: string;
  readonly Callers: number;
  readonly Connections?: number;
  readonly Seconds: number;
  readonly PauseMs?: number;
  readonly CallsEach?: number;
  /** In base64. */
  readonly Requests: readonly string[];
  readonly Path?: string;
  readonly Authorizations?: readonly string[];
  readonly Expect?: string;
  readonly ExpectTimes?: number;
  readonly MayFail?: boolean;
};

export type LoadResult = Load & {
  readonly calls: number;
  /** Only with MayFail; not among the calls. */
  readonly failed: number;
  /** gRPC messages received. */
  readonly messages: number;
  readonly seconds: number;
  readonly maxMs: number;
};

const SOURCE = join(import.meta.dirname, "clients", "load");
/** git ignores it. */
const PROGRAM = join(import.meta.dirname, "..", ".clients", "bench-load");

let built: Promise<unknown> | undefined;

/** Builds the load client, which is written in Go. Unavailable without Go. */
export async function buildLoadProgram(): Promise<void> {
  built ??= promisify(execFile)("go", ["build", "-o", PROGRAM, "."], { cwd: SOURCE });
  try {
    await built;
  } catch (error) {
    throw new Unavailable(`the load client needs Go: ${(error as Error).message}`);
  }
}

/** Runs the load client in a process of its own. Fails if one of its calls fails. */
export async function runLoadProgram(spec: Spec): Promise<LoadResult> {
  await buildLoadProgram();
  const child = spawn(PROGRAM, { stdio: ["pipe", "pipe", "pipe"] });
  const exited = once(child, "exit");
  child.stdin.end(JSON.stringify(spec));
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await exited;
  if (child.exitCode !== 0) throw new Error(`the load client failed: ${errors.slice(0, 1_000)}`);
  return JSON.parse(output) as LoadResult;
}
