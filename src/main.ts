import cluster from "node:cluster";

// A worker is told over its channel what to do; everything else is a command.
if (cluster.isWorker) {
  const { runWorker } = await import("./cli/worker.ts");
  await runWorker();
} else {
  const { runCommandLine } = await import("./cli/program.ts");
  await runCommandLine(process.argv.slice(2));
}
