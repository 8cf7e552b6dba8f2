import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";

export type Program = {
  readonly pid: number;
  /** Resolves to the next line of the output that matches. */
  next(pattern: RegExp): Promise<string>;
  stop(): Promise<void>;
};

const running = new Set<ChildProcess>();
/** A stopped bench stops its programs. SIGTERM lets a server stop its PostgreSQL. */
process.once("exit", () => {
  for (const child of running) child.kill("SIGTERM");
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

type ProgramOptions = {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  /** A file for the standard error. Default: that of the bench. */
  readonly logFile?: string;
};

export function startProgram(
  script: readonly string[],
  { env = {}, cwd = process.cwd(), logFile }: ProgramOptions = {},
): Program {
  const log = logFile === undefined ? undefined : openSync(logFile, "a");
  const child = spawn(process.execPath, script, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", log ?? "inherit"],
  });
  if (log !== undefined) closeSync(log);
  const lines = createInterface({ input: child.stdout as Readable })[Symbol.asyncIterator]();
  return {
    ...runningProgram(child),
    next: async (pattern) => {
      for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
        const found = pattern.exec(line.value);
        if (found) return found[1] ?? found[0];
      }
      throw new Error(`${script.join(" ")} ended without a line like ${pattern}`);
    },
  };
}

type LoggedProgram = {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
  /** Returns 200 when the program is ready. */
  readonly readyUrl: string;
};

const START_MS = 120_000;
const POLL_MS = 200;

/** Starts a program whose whole output goes to the file "output" of its folder, and waits until it is ready. */
export async function startLoggedProgram(
  cleanup: AsyncDisposableStack,
  { command, args, env, cwd, readyUrl }: LoggedProgram,
): Promise<{ pid: number }> {
  const path = join(cwd, "output");
  const output = openSync(path, "a");
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", output, output] });
  closeSync(output);
  const { pid, stop } = runningProgram(child);
  cleanup.defer(stop);
  const until = performance.now() + START_MS;
  while (child.exitCode === null && performance.now() < until) {
    const response = await fetch(readyUrl).catch(() => undefined);
    if (response?.ok) return { pid };
    await setTimeout(POLL_MS);
  }
  throw new Error(`${command} did not start: ${readFileSync(path, "utf8").slice(-1_000)}`);
}

function runningProgram(child: ChildProcess) {
  running.add(child);
  child.once("exit", () => running.delete(child));
  return {
    pid: child.pid ?? 0,
    stop: async () => {
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

/** Starts one of bench/programs, which prints its address, and returns the address. */
export async function startBaseline(
  cleanup: AsyncDisposableStack,
  name: string,
  { args = [], env = {} }: { args?: readonly string[]; env?: Record<string, string> } = {},
): Promise<string> {
  const program = startProgram([join(import.meta.dirname, "programs", `${name}.ts`), ...args], { env });
  cleanup.defer(program.stop);
  return await program.next(/^ready on (\S+)/);
}

/** Resident memory of a process in MiB (Linux). */
export function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}

const SAMPLE_MS = 20;

/** Records the largest resident memory of a process in MiB until `stop` returns it. */
export function watchMemory(pid: number): { stop(): number } {
  let maxMib = residentMib(pid);
  const sampling = setInterval(() => {
    maxMib = Math.max(maxMib, residentMib(pid));
  }, SAMPLE_MS);
  return {
    stop: () => {
      clearInterval(sampling);
      return maxMib;
    },
  };
}
