import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createModelsFile, modelsYaml } from "../support/models.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

let folder: ReturnType<typeof createTemporaryFolder>;
let file: ReturnType<typeof createModelsFile>;
let server: ServerProcess;

beforeEach(() => {
  folder = createTemporaryFolder("reload");
  file = createModelsFile(modelsYaml(["first"]));
});
afterEach(async () => {
  if (server.child.exitCode === null) await server.end("SIGTERM");
  folder.remove();
  file.remove();
});

function start(env: Record<string, string> = {}) {
  server = startServerProcess({ VX_DATA_DIR: folder.path, VX_MODELS: file.path, ...env });
  return server;
}

/** The ids, each time over a connection of its own, so that every worker is asked. */
async function idsOf(url: string, secret: string): Promise<string[]> {
  const headers = { ...bearer(secret), connection: "close" };
  const answer = await fetch(`${url}/v1/models`, { headers });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

describe.each([1, 2])("with %i server process(es)", (workers) => {
  test("SIGHUP takes the new models in all of them; a wrong file changes nothing and says so once", async () => {
    start({ VX_WORKERS: String(workers) });
    const secret = await server.line(/(vx_live_\w+)/);
    const url = await server.line(/^vx ready on (\S+)$/m);
    expect(await idsOf(url, secret)).toEqual(["first"]);
    expect(server.stdout()).toContain('{"model": "first", "messages"');
    expect(await (await fetch(url)).text()).toContain('"model": "first"');
    const told = (text: string) => server.stderr().split(text).length - 1;

    file.write("models: [{id: second}]");
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(told("the former ones stay")).toBeGreaterThanOrEqual(1));
    expect(server.stderr()).toContain("models.yaml:1: models[0].context_window: is missing");
    expect(await idsOf(url, secret)).toEqual(["first"]);

    file.write(modelsYaml(["second", "third"]));
    server.child.kill("SIGHUP");
    // The process that forked them has the models, too: it serves the operator.
    const processes = workers === 1 ? 1 : workers + 1;
    await vi.waitFor(() => expect(told("models were read again")).toBe(processes));
    for (let i = 0; i < 8; i++) expect(await idsOf(url, secret)).toEqual(["second", "third"]);
    for (const path of ["/", "/openapi.json"]) {
      const page = await (await fetch(url + path, { headers: { connection: "close" } })).text();
      expect(page).toMatch(/"model": "second"/);
      expect(page).not.toContain(`"first"`);
    }
    expect(told("the former ones stay")).toBe(processes);
    expect(await server.end("SIGTERM")).toBe(0);
  });
});

test("a wrong file at the start is clear lines and exit 2, and no database is made", async () => {
  file.write(modelsYaml(["a", "a"]));
  start();
  expect(await server.exited()).toBe(2);
  expect(server.stderr()).toBe(`vx: wrong models\n${file.path}:3: models[1].id: "a" is there twice\n`);
  expect(server.stdout()).toBe("");
});
