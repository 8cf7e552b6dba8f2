import { type Define, withExamples } from "./command.ts";
import { EXIT_FAILED } from "./exit.ts";
import { printError } from "./output.ts";

/** Apart from what it runs, so that help does not load the server. */
export const define: Define = (command) => {
  withExamples(command, [
    "vx serve",
    "PORT=9000 DATABASE_URL=postgres://owner@db.example/vx vx serve",
  ]).action(run);
};

async function run(): Promise<void> {
  const { serve } = await import("./serve.ts");
  try {
    process.exitCode = await serve();
  } catch (error) {
    // A fault of ours: whoever repairs it needs to see where. The stack alone: an error may hold a password.
    await printError(`vx: the server could not be started\n${error instanceof Error ? error.stack : error}`);
    process.exitCode = EXIT_FAILED;
  }
  // What was half started may hold the process.
  if (process.exitCode !== 0) process.exit();
}
