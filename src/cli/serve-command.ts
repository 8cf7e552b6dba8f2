import { type Define, type JsonOption, withExamples } from "./command.ts";
import { EXIT_FAILED } from "./failure.ts";
import { printError } from "./output.ts";
import { shell } from "./shell.ts";

/** Separate from the server code, so that help does not load the server. */
export const define: Define = (command) => {
  withExamples(command, ["vx serve", "PORT=9000 DATABASE_URL=postgres://owner@db.example/vx vx serve"])
    .option("--json", "print JSON lines; the last one at the start has the addresses")
    .action(run);
};

async function run({ json }: JsonOption): Promise<void> {
  const { serve } = await import("./serve.ts");
  let exitCode: number;
  try {
    exitCode = await serve(json === true);
  } catch (error) {
    // This is a bug, so the stack is needed. Other fields of the error are omitted: they may contain a
    // password.
    await printError(`vx: the server failed to start\n${error instanceof Error ? error.stack : error}`);
    exitCode = EXIT_FAILED;
  }
  // Exit explicitly: a partly started server or an unread output would keep the process alive.
  shell.exit(exitCode);
}
