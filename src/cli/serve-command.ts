import { EXIT_FAILED } from "./failure.ts";
import { printError } from "./output.ts";
import { flag } from "./parameters.ts";
import { command } from "./row.ts";
import { shell } from "./shell.ts";

/** Separate from the server code, so that help does not load the server. */
export const row = command({
  parameters: { json: flag("--json", "print JSON lines; the last one at the start has the addresses") },
  examples: ["", "PORT=9000 DATABASE_URL=postgres://owner@db.example/vx vx serve"],
  run: async ({ json }) => {
    const { serve } = await import("./serve.ts");
    let exitCode: number;
    try {
      exitCode = await serve(json);
    } catch (error) {
      // This is a bug, so the stack is needed. Other fields of the error are omitted: they may contain a
      // password.
      await printError(`vx: the server failed to start\n${error instanceof Error ? error.stack : error}`);
      exitCode = EXIT_FAILED;
    }
    // Exit explicitly: a partly started server or an unread output would keep the process alive.
    shell.exit(exitCode);
  },
});
