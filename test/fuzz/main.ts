// Sends random requests to a real server: npm run fuzz [-- --requests N --seed N]. Exits with 1 if a rule is violated.
import { parseArgs } from "node:util";
import { fuzz } from "./run.ts";
import { startFuzzServer } from "./server.ts";

/** The time limit of a run, for any number of requests. */
const MAX_MINUTES = 30;

const { values } = parseArgs({ options: { requests: { type: "string", default: "100000" }, seed: { type: "string" } } });
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const requests = Number(values.requests);
if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(requests) || requests < 1) {
  console.error("--requests and --seed are whole numbers");
  process.exit(2);
}
console.log(`seed ${seed}, ${requests} requests`);
const server = await startFuzzServer();
try {
  const startedAt = performance.now();
  const { sent, statuses, reached, faults } = await fuzz(server, seed, requests, startedAt + MAX_MINUTES * 60_000);
  const seconds = (performance.now() - startedAt) / 1_000;
  console.log(`${sent} requests in ${seconds.toFixed(1)} s`);
  for (const [status, count] of [...statuses].sort()) console.log(`  ${status} ${count}`);
  console.log("no rule was violated");
  for (const [sort, count] of [...reached].sort()) console.log(`  ${sort} ${count}`);
  for (const fault of faults) console.log(fault);
  if (faults.length > 0) process.exitCode = 1;
} finally {
  await server.stop();
}
