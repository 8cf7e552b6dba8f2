// Loaded before the server: on each SIGUSR2, prints the longest pause of the event loop since the last
// signal.
import { monitorEventLoopDelay } from "node:perf_hooks";

const RESOLUTION_MS = 1;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
process.on("SIGUSR2", () => {
  console.log(`longest pause ${(delay.max / 1e6 - RESOLUTION_MS).toFixed(2)} ms`);
  delay.reset();
});
