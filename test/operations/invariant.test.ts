import { beforeAll, expect, test, vi } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { replaceInFunction } from "../torture/planted/plant.ts";
import { isAlive, ready, start, useDataFolder, workersOf } from "./server-process.ts";

useDataFolder();

const EXIT_INVARIANT = 70;

const database = started(() => createTestDatabase());
beforeAll(async () => {
  // Only a batch that begins with the charge for a single token has the wrong balance.
  await replaceInFunction(database.owner, "bill", {
    find: "v_results := post_entries(p_ends, v_plans);",
    put: `v_results := post_entries(p_ends, v_plans);
      IF p_ends[1].output = 1 THEN v_results[1].balance_micros := -1; END IF;`,
  });
});

function generate(url: string, secret: string, content: string, stream: boolean): Promise<Response> {
  return fetch(`${url}/v1/generate`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(secret) },
    body: JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content }], stream }),
  });
}

test.each(["1", "2"])(
  "a wrong balance ends a server with %s process(es): the call fails, running calls finish, the exit code is 70",
  async (processes) => {
    const server = start({ DATABASE_URL: database.url, VX_SEED_DEMO: "1", VX_WORKERS: processes });
    const url = await server.line(ready);
    secret ??= await server.line(/(vx_live_\w+)/);
    const workers = workersOf(server.child.pid as number);
    const running = await generate(url, secret, "[[tokens=20 delay_ms=100]]", true);
    const reader = (running.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();

    const failed = await generate(url, secret, "[[tokens=1]]", false);
    expect(failed.status).toBe(500);
    expect(await failed.json()).toMatchObject({ error: { code: "internal" } });
    await vi.waitFor(() => expect(generate(url, secret as string, "[[tokens=1]]", false)).rejects.toThrow());
    let text = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += Buffer.from(part.value).toString();
    expect(text).toMatch(/"done"[\s\S]*\[DONE\]\n\n$/);

    expect(await server.exited()).toBe(EXIT_INVARIANT);
    expect(workers.filter(isAlive)).toEqual([]);
    const violations = server
      .stderr()
      .split("\n")
      .filter((line) => line.includes('"msg":"invariant violated"'))
      .map((line) => JSON.parse(line));
    expect(violations).toContainEqual(
      expect.objectContaining({
        level: "fatal",
        invariant: "a charge leaves a balance of at least 0",
        facts: expect.objectContaining({ hold: expect.stringMatching(/^gen_/), balanceMicros: -1 }),
      }),
    );
    expect(server.stderr()).not.toContain("another one is started");
  },
);

/** The key of the demo account, which the first start creates. */
let secret: string | undefined;
