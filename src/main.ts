import cluster from "node:cluster";
import { keepTickClasses } from "./cli/keep-tick-classes.ts";

keepTickClasses();

// A worker gets its messages over its channel; any other process runs a command.
if (cluster.isWorker) {
  const { runWorker } = await import("./cli/worker.ts");
  await runWorker();
} else {
  const { runCommandLine } = await import("./cli/program.ts");
  await runCommandLine(process.argv.slice(2));
}
