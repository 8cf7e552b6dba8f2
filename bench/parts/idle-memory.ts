// Memory of an idle server.
import { setTimeout } from "node:timers/promises";
import type { Part } from "../part.ts";
import { residentMib } from "../program.ts";
import { startServer, temporaryFolder } from "../server.ts";

const IDLE_MS = 3_000;

export const idleMemory: Part<{ idle: { residentMib: number } }> = {
  rounds: 3,
  // The first start creates the database and compiles the code.
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    const dataDir = temporaryFolder(cleanup);
    return {
      idle: async () => {
        await using started = new AsyncDisposableStack();
        const { pid } = await startServer(checkout, started, { dataDir });
        await setTimeout(IDLE_MS);
        return { residentMib: residentMib(pid) };
      },
    };
  },
  figures: [{ name: "resident memory of an idle server", unit: "MiB", max: 120, value: (r) => r.idle.residentMib }],
};
