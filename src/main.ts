import { executionAsyncResource } from "node:async_hooks";
import cluster from "node:cluster";

const kept: object[] = [];

keepTickClasses();

// A worker gets its messages over its channel; any other process runs a command.
if (cluster.isWorker) {
  const { runWorker } = await import("./cli/worker.ts");
  await runWorker();
} else {
  stopWithParent();
  const { run } = await import("./cli/program.ts");
  await run(process.argv.slice(2), process);
}

/**
 * Keeps one object of `process.nextTick`, and with it V8's hidden classes of these objects. If a full garbage collection finds
 * none, the classes are removed, and from then on each property of each such object is defined by V8's runtime: a tick takes
 * seven times as long, and a call has nine of them. Call this before the first collection.
 */
function keepTickClasses(): void {
  process.nextTick(() => kept.push(executionAsyncResource()));
}

/** If the process that started this one with a channel is killed, nobody else stops this one. */
function stopWithParent(): void {
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  // A command ends although the channel is open.
  process.channel?.unref();
}
