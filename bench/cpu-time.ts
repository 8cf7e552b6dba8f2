import { readdirSync, readFileSync } from "node:fs";
import type { Load } from "./load.ts";
import type { Figure } from "./part.ts";

export type ServerLoad = Load & {
  /** CPU time of the server and its PostgreSQL per call: it varies less with other load than calls per second. */
  readonly cpuMicros: number;
};

/** The CPU time per call of an arm with withCpuTime. */
export function cpuFigure<Arm extends string>(arm: Arm): Figure<Record<Arm, ServerLoad>> {
  const name = "  CPU time of server and PostgreSQL per call";
  return { name, unit: "µs", value: (round) => round[arm].cpuMicros };
}

/** Adds the CPU time per call of the processes and their descendants. */
export function withCpuTime(pids: number | readonly number[], arm: () => Promise<Load>): () => Promise<ServerLoad> {
  const read = () => [pids].flat().reduce((sum, pid) => sum + cpuMicrosOf(pid), 0);
  return async () => {
    const [cpuBefore, startedAt] = [read(), performance.now()];
    const load = await arm();
    const calls = (load.perSecond * (performance.now() - startedAt)) / 1000;
    return { ...load, cpuMicros: (read() - cpuBefore) / calls };
  };
}

/** The kernel counts CPU time in hundredths of a second. */
const MICROS_PER_TICK = 10_000;

/** CPU time of the process and its descendants. */
export function cpuMicrosOf(pid: number): number {
  return treeOf(pid).reduce((sum, { ticks }) => sum + ticks, 0) * MICROS_PER_TICK;
}

/** The process and its descendants. */
export function pidsOf(pid: number): number[] {
  return treeOf(pid).map((process) => process.pid);
}

function treeOf(pid: number): Process[] {
  const processes = readProcesses();
  const below = (parent: number): Process[] =>
    processes.filter((process) => process.parent === parent).flatMap((child) => [child, ...below(child.pid)]);
  return [...processes.filter((process) => process.pid === pid), ...below(pid)];
}

type Process = { readonly pid: number; readonly parent: number; readonly ticks: number };

function readProcesses(): Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        // The fields after the program's name, which may contain spaces: state, parent, …, utime, stime.
        const fields = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
        return [{ pid: Number(name), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }];
      } catch {
        // The process has ended.
        return [];
      }
    });
}
