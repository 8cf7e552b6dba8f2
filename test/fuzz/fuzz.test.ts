import { expect, test } from "vitest";
import { fuzz } from "./run.ts";
import { startFuzzServer } from "./server.ts";

const GENERATIONS = ["POST /v1/generate", "POST /v1/chat/completions"].flatMap((sort) => [sort, `${sort} streamed`]);

test("800 random requests violate no rule", async () => {
  const server = await startFuzzServer();
  try {
    const { sent, statuses, reached, faults } = await fuzz(server, 1, 800);
    expect(faults).toEqual([]);
    expect(sent).toBe(800);
    // Otherwise all requests would be rejected by the gate.
    for (const status of ["200", "400", "401", "404", "405", "413", "415"])
      expect(statuses.get(status), status).toBeGreaterThan(0);
    for (const sort of ["GET /v1/models", "GET /v1/ledger", ...GENERATIONS]) expect(reached.get(sort), sort).toBeGreaterThan(0);
  } finally {
    await server.stop();
  }
});
