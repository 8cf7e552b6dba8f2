import postgres from "postgres";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { putDatabase } from "../support/data-folder.ts";
import { loginIn } from "../support/embedded.ts";
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

/** The model ids, over a new connection each time, so that every worker is queried. */
async function idsOf(url: string, secret: string): Promise<string[]> {
  const headers = { ...bearer(secret), connection: "close" };
  const answer = await fetch(`${url}/v1/models`, { headers });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

/** The registered price versions. */
async function versionsIn(dataDir: string): Promise<string[]> {
  const owner = postgres({ ...loginIn(dataDir), max: 1 });
  const rows = await owner<{ text: string }[]>`
    SELECT format('%s %s', model, version) AS text FROM vx.price_versions ORDER BY model, version`;
  await owner.end();
  return rows.map(({ text }) => text);
}

describe.each([1, 2])("with %i server process(es)", (workers) => {
  test("SIGHUP reloads the models in all processes; changed prices become one version; an invalid file changes nothing and is logged once per process", async () => {
    putDatabase(folder.path);
    start({ VX_WORKERS: String(workers) });
    const secret = await server.line(/(vx_live_\w+)/);
    const url = await server.line(/^vx ready on (\S+)$/m);
    expect(await idsOf(url, secret)).toEqual(["first"]);
    expect(server.stdout()).toContain('{"model": "first", "messages"');
    expect(await (await fetch(url)).text()).toContain('"model": "first"');
    const logged = (text: string) => server.stderr().split(text).length - 1;

    file.write("models: [{id: second}]");
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(logged("reloading models failed")).toBeGreaterThanOrEqual(1));
    expect(server.stderr()).toContain("models.yaml:1: models[0].context_window: is missing");
    expect(await idsOf(url, secret)).toEqual(["first"]);

    file.write(modelsYaml(["second", "third"]));
    server.child.kill("SIGHUP");
    // The parent process loads the models too, for the operator API.
    const processes = workers === 1 ? 1 : workers + 1;
    await vi.waitFor(() => expect(logged("reloaded models")).toBe(processes));
    for (let i = 0; i < 8; i++) expect(await idsOf(url, secret)).toEqual(["second", "third"]);
    for (const path of ["/", "/openapi.json"]) {
      const page = await (await fetch(url + path, { headers: { connection: "close" } })).text();
      expect(page).toMatch(/"model": "second"/);
      expect(page).not.toContain(`"first"`);
    }
    expect(logged("reloading models failed")).toBe(processes);

    const versions = () => versionsIn(folder.path);
    expect(await versions()).toEqual(["first 1", "second 1", "third 1"]);
    file.write(modelsYaml(["second", "third"]).replace("input_micros_per_million_tokens: 1", "$&0"));
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(logged("reloaded models")).toBe(2 * processes));
    expect(await versions()).toEqual(["first 1", "second 1", "second 2", "third 1"]);
    expect(await server.end("SIGTERM")).toBe(0);
  });
});

test("an invalid file at start exits 2 with an error, and no database is created", async () => {
  file.write(modelsYaml(["a", "a"]));
  start();
  expect(await server.exited()).toBe(2);
  expect(server.stderr()).toBe(`vx: invalid models file\n${file.path}:3: models[1].id: "a" is used twice\n`);
  expect(server.stdout()).toBe("");
});
