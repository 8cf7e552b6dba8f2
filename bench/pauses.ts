// Loaded before the server: tells, at each SIGUSR2, the longest pause of its event loop since the last one.
import { monitorEventLoopDelay } from "node:perf_hooks";

const RESOLUTION_MS = 1;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
process.on("SIGUSR2", () => {
  console.log(`longest pause ${(delay.max / 1e6 - RESOLUTION_MS).toFixed(2)} ms`);
  delay.reset();
});
