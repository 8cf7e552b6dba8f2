import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

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
  /** Default: this Node. */
  readonly command?: string;
  /** A file for the standard error. Default: that of the bench. */
  readonly logFile?: string;
};

export function startProgram(
  script: readonly string[],
  { env = {}, cwd = process.cwd(), command = process.execPath, logFile }: ProgramOptions = {},
): Program {
  const log = logFile === undefined ? undefined : openSync(logFile, "a");
  const child = spawn(command, script, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", log ?? "inherit"],
  });
  if (log !== undefined) closeSync(log);
  running.add(child);
  child.once("exit", () => running.delete(child));
  const lines = createInterface({ input: child.stdout as Readable })[Symbol.asyncIterator]();
  return {
    pid: child.pid ?? 0,
    next: async (pattern) => {
      for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
        const found = pattern.exec(line.value);
        if (found) return found[1] ?? found[0];
      }
      throw new Error(`${script.join(" ")} ended without a line like ${pattern}`);
    },
    stop: async () => {
      child.kill("SIGTERM");
      if (child.exitCode === null) await once(child, "exit");
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
