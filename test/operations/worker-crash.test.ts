import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { started } from "../support/started.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { replaceInFunction } from "../torture/planted/plant.ts";
import { generate, getMe, isAlive, PLANTED_CRASHES, ready, restOf, workersOf } from "./server-process.ts";

const folder = createTemporaryFolder("worker-crash");
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

let server: ServerProcess;
let url: string;
let secret: string;
beforeAll(async () => {
  server = startServerProcess({
    DATABASE_URL: database.url,
    VX_DATA_DIR: folder.path,
    VX_SEED_DEMO: "1",
    VX_WORKERS: "2",
    NODE_OPTIONS: `--import ${PLANTED_CRASHES}`,
  });
  url = await server.line(ready);
  secret = await server.line(/(vx_live_\w+)/);
});
afterAll(() => {
  server.child.kill("SIGKILL");
  folder.remove();
});

test("after an unhandled rejection, the worker is replaced at once, and the others continue", async () => {
  const main = server.child.pid as number;
  const [crashed = 0, other] = workersOf(main);
  process.kill(crashed, "SIGWINCH");
  await vi.waitFor(() => expect(isAlive(crashed)).toBe(false));
  await vi.waitFor(() => expect(workersOf(main)).toHaveLength(2));
  expect(workersOf(main)).toContain(other);
  expect(server.stderr()).toMatch(/planted rejection.*"msg":"unhandled rejection"/);
  expect(server.stderr()).toContain("worker crashed, starting another one");
  expect(server.stderr()).not.toContain("worker exited");
  expect(await getMe(url, secret)).toMatchObject({ status: 200 });
});

const asks = (content: string) => ({ messages: [{ role: "user", content }] });

test("a wrong balance ends all processes of a server: the call fails, running calls finish, the exit code is 70", async () => {
  const workers = workersOf(server.child.pid as number);
  const running = await generate(url, secret, { ...asks("[[tokens=20 delay_ms=100]]"), stream: true });
  const reader = (running.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();

  const failed = await generate(url, secret, asks("[[tokens=1]]"));
  expect(failed.status).toBe(500);
  expect(await failed.json()).toMatchObject({ error: { code: "internal" } });
  await vi.waitFor(() => expect(generate(url, secret, asks("[[tokens=1]]"))).rejects.toThrow());
  expect(await restOf(reader)).toMatch(/"done"[\s\S]*\[DONE\]\n\n$/);

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
});
