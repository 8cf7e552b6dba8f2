import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";
import { errnoOf, ignoring } from "./error.ts";

/** `command` is the command line with single spaces between its arguments. */
export type Process = { readonly pid: number; readonly parent: number; readonly command: string };

const hasProc = process.platform === "linux";
const NOT_FOUND = ["ENOENT", "ESRCH"];

/** A live process. A zombie counts as ended: in a container it may never be reaped. */
export async function readProcess(pid: number): Promise<Process | undefined> {
  if (!hasProc) return (await listWithPs(["-p", String(pid)]))[0];
  const stat = await ignoring(NOT_FOUND, readFile(`/proc/${pid}/stat`, "utf8"));
  const commandLine = await ignoring(NOT_FOUND, readFile(`/proc/${pid}/cmdline`, "utf8"));
  if (stat === undefined || commandLine === undefined) return undefined;
  const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (state === "Z" || state === "X") return undefined;
  return { pid, parent: Number(parent), command: commandLine.replace(/\0+$/, "").replaceAll("\0", " ") };
}

/** Also true for a zombie, and for a process that this user may not signal. */
export function isPidTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === "EPERM";
  }
}

export async function listProcesses(): Promise<Process[]> {
  if (!hasProc) return listWithPs(["-A"]);
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const processes = await Promise.all(pids.map(readProcess));
  return processes.filter((process) => process !== undefined);
}

async function listWithPs(selection: readonly string[]): Promise<Process[]> {
  const columns = ["-ww", "-o", "pid=,ppid=,stat=,command="];
  // ps exits with 1 when no process matches.
  const { stdout } = await promisify(execFile)("ps", [...columns, ...selection]).catch(() => ({
    stdout: "",
  }));
  const processes: Process[] = [];
  for (const line of stdout.split("\n")) {
    const [, pid, parent, state, command] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    if (command === undefined || state?.startsWith("Z")) continue;
    processes.push({ pid: Number(pid), parent: Number(parent), command });
  }
  return processes;
}

/**
 * Whether the process is the postmaster of that cluster. The command line is the one that `launchPostmaster`
 * sets.
 */
export async function isPostmasterOf(clusterDir: string, process: Process): Promise<boolean> {
  if (process.command.endsWith(`/postgres -D ${clusterDir}`)) return true;
  if (!hasProc || !process.command.includes("/postgres -D ")) return false;
  // The folder may have been moved since. Without CAP_SYS_PTRACE root may not read the link; then the result
  // is false.
  const cwd = await ignoring([...NOT_FOUND, "EACCES", "EPERM"], readlink(`/proc/${process.pid}/cwd`));
  return cwd === clusterDir;
}
