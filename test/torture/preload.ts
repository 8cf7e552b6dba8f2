// Runs in the server's process before the server does: its clock can be set by signal, its state is written down, and
// a planted bug is put into the module it belongs to. The product knows nothing of it.
import { appendFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";
import { plantInCode } from "./planted/plant.ts";

const PROBE_MS = 1_000;
const LOOK_MS = 10;
/** In every turn of the event loop that is not shorter than this. */
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
 * What a pause was made of: where the processors are taken by others, most of one is waiting for them. Until Node 23
 * nobody tells the time of one thread; it is that of the process there.
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

/** One line per second: memory, the longest pause of the event loop, what is open; now and then after a collection. */
function probe(file: string): void {
  const delay = monitorEventLoopDelay({ resolution: LOOK_MS });
  delay.enable();
  const work = watchWork();
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  let looks = 0;
  setInterval(() => {
    // The histogram measures the distance of two looks: what goes beyond the 10 ms between them was a pause.
    const pauseMs = Math.max(0, delay.max / 1e6 - LOOK_MS);
    const { rss, heapUsed, external } = process.memoryUsage();
    // What is not garbage tells sooner than anything else whether something grows.
    const isCollected = COLLECTS && looks++ % COLLECT_EVERY === 0;
    if (isCollected) collect();
    const heapKept = isCollected ? process.memoryUsage().heapUsed : undefined;
    const handles = process.getActiveResourcesInfo().length;
    delay.reset();
    const at = performance.timeOrigin + performance.now();
    appendFileSync(
      file,
      `${JSON.stringify({ at, rss, heapUsed, heapKept, external, handles, pauseMs, workMs: work() })}\n`,
    );
  }, PROBE_MS).unref();
}
