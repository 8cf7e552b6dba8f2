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
  let exitCode: number;
  try {
    exitCode = await serve();
  } catch (error) {
    // A defect: the repair needs the place. The stack alone, as other fields of an error may hold a password.
    await printError(`vx: the server could not be started\n${error instanceof Error ? error.stack : error}`);
    exitCode = EXIT_FAILED;
  }
  // A server that started only half, or an output nobody reads, would keep the process.
  process.exit(exitCode);
}
