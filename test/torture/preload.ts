// Loaded into the server's process before the server: lets a signal set the clock, records the process's
// state, and plants a bug in its module. The product does not depend on it.
import { appendFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";
import { plantInCode } from "./planted/plant.ts";

const PROBE_MS = 1_000;
const LOOK_MS = 10;
/** Sampling interval. A longer turn of the event loop is one sample. */
const WORK_LOOK_MS = 1;
const COLLECTS = process.env.TORTURE_COLLECTS === "1";
const COLLECT_EVERY = 10;

if (isMainThread) {
  followClock();
  const { TORTURE_PROBE_FILE, TORTURE_PLANTED } = process.env;
  if (TORTURE_PROBE_FILE) probe(TORTURE_PROBE_FILE);
  if (TORTURE_PLANTED) plantInCode(TORTURE_PLANTED);
}

/** SIGUSR2 sets the clock: 90 s ahead, then 90 s behind, then right again. */
function followClock(): void {
  const RealDate = Date;
  const shiftsMs = [90_000, -90_000, 0];
  let shiftMs = 0;
  globalThis.Date = class extends RealDate {
    constructor(...values: unknown[]) {
      if (values.length === 0) super(RealDate.now() + shiftMs);
      else super(...(values as [number]));
    }

    static override now(): number {
      return RealDate.now() + shiftMs;
    }
  } as DateConstructor;
  process.on("SIGUSR2", () => {
    shiftMs = shiftsMs[(shiftsMs.indexOf(shiftMs) + 1) % shiftsMs.length] ?? 0;
  });
}

/**
 * Measures CPU time, because on a busy machine most of a pause is waiting for a processor. Before Node 23 the
 * CPU time of one thread is not available, so that of the process is used.
 */
function watchWork(): () => number {
  const usage = () => {
    const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
    return (user + system) / 1_000;
  };
  let last = usage();
  let most = 0;
  setInterval(() => {
    const now = usage();
    most = Math.max(most, now - last);
    last = now;
  }, WORK_LOOK_MS).unref();
  return () => {
    const seen = most;
    most = 0;
    return seen;
  };
}

/**
 * Writes one line per second: memory, the longest event loop pause, open handles, and at times the heap after
 * a collection.
 */
function probe(file: string): void {
  const delay = monitorEventLoopDelay({ resolution: LOOK_MS });
  delay.enable();
  const work = watchWork();
  const collect = COLLECTS ? collector() : undefined;
  let looks = 0;
  setInterval(() => {
    // The histogram measures the interval between samples: what exceeds the resolution of 10 ms is a pause.
    const pauseMs = Math.max(0, delay.max / 1e6 - LOOK_MS);
    const { rss, heapUsed, external } = process.memoryUsage();
    // The heap after a collection shows growth sooner than any other figure.
    const isCollected = collect !== undefined && looks++ % COLLECT_EVERY === 0;
    if (isCollected) collect();
    const heapKept = isCollected ? process.memoryUsage().heapUsed : undefined;
    const handles = process.getActiveResourcesInfo().length;
    delay.reset();
    const at = performance.timeOrigin + performance.now();
    appendFileSync(file, `${JSON.stringify({ at, rss, heapUsed, heapKept, external, handles, pauseMs, workMs: work() })}\n`);
  }, PROBE_MS).unref();
}

/** Its second V8 context makes each call of the process take more CPU time. */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}
