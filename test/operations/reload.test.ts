import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { ConfigError } from "../../src/app/start-error.ts";
import { ModelsError } from "../../src/models/problems.ts";
import { launchTestApp, OPERATOR_TOKEN } from "../support/app.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createLeakReporter, leakKeysFile, sendReport } from "../support/leak-reporter.ts";
import { modelsYaml } from "../support/models.ts";
import { startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** A server whose files change. */
type Server = {
  readonly url: string;
  /** The processes that read the files. */
  readonly processes: number;
  printed(): string;
  log(): string;
  requestReload(): unknown;
  end(): Promise<unknown>;
};

const ready = /^vx ready on (\S+)$/m;

async function startHere(env: Record<string, string>): Promise<Server> {
  const { started, printed, logText, end } = launchTestApp(env);
  const { url, reload } = await started;
  return { url, processes: 1, printed: () => printed.join("\n"), log: logText, requestReload: reload, end };
}

/** Two workers, and the process that starts them, which loads the models for the operator API. */
async function startWorkers(env: Record<string, string>): Promise<Server> {
  const server = startServerProcess({ ...env, VX_WORKERS: "2" });
  return {
    url: await server.line(ready),
    processes: 3,
    printed: server.stdout,
    log: server.stderr,
    requestReload: () => server.child.kill("SIGHUP"),
    end: async () => expect(await server.end("SIGTERM")).toBe(0),
  };
}

describe.each([
  { processes: "one process", begin: startHere },
  { processes: "worker processes", begin: startWorkers },
])("with $processes, a reload reads", ({ begin }) => {
  const folder = createTemporaryFolder("reload");
  const old = createLeakReporter("old");
  let database: TestDatabase;
  let upstream: FakeUpstream;
  let server: Server;
  let secret: string;

  const write = (name: string, text: string) => writeFileSync(join(folder.path, name), text);
  const logged = (text: string | RegExp) => server.log().split(text).length - 1;

  /** Waits until each process has read the models, which it does last, and returns how many accepted them. */
  async function reload(): Promise<number> {
    const [before, accepted] = [logged(/reload(?:ed|ing) models/), logged("reloaded models")];
    server.requestReload();
    await vi.waitFor(() => expect(logged(/reload(?:ed|ing) models/)).toBe(before + server.processes));
    return logged("reloaded models") - accepted;
  }

  beforeAll(async () => {
    [database, upstream] = await Promise.all([createTestDatabase(), FakeUpstream.start()]);
    write("models.yaml", modelsYaml(["first"]));
    write("leak-keys.json", leakKeysFile(old));
    server = await begin({
      DATABASE_URL: database.url,
      VX_DATA_DIR: folder.path,
      VX_ADMIN_TOKEN: OPERATOR_TOKEN,
      VX_SEED_DEMO: "1",
      VX_MODELS: join(folder.path, "models.yaml"),
      VX_LEAK_KEYS_FILE: join(folder.path, "leak-keys.json"),
    });
    secret = /vx_live_\w+/.exec(server.printed())?.[0] ?? "";
  });
  afterAll(async () => {
    await server.end();
    await upstream.stop();
    await database.drop();
    folder.remove();
  });

  /** The model ids, over a new connection each time, so that every worker is queried. */
  async function modelIds(): Promise<string[]> {
    const headers = { ...bearer(secret), connection: "close" };
    const answer = await fetch(`${server.url}/v1/models`, { headers });
    const { data } = (await answer.json()) as { data: { id: string }[] };
    return data.map(({ id }) => id);
  }

  /** The registered price versions. */
  async function priceVersions(): Promise<string[]> {
    const rows = await database.owner<{ text: string }[]>`
      SELECT format('%s %s', model, version) AS text FROM vx.price_versions ORDER BY model, version`;
    return rows.map(({ text }) => text);
  }

  test("the models in all processes; changed prices become one version; an invalid file changes nothing and is logged once per process", async () => {
    expect(await modelIds()).toEqual(["first"]);
    expect(server.printed()).toContain('{"model": "first", "messages"');
    expect(await (await fetch(server.url)).text()).toContain('"model": "first"');

    write("models.yaml", "models: [{id: second}]");
    expect(await reload()).toBe(0);
    expect(logged("reloading models failed")).toBe(server.processes);
    expect(server.log()).toContain("models.yaml:1: models[0].context_window: is missing");
    expect(await modelIds()).toEqual(["first"]);

    write("models.yaml", modelsYaml(["second", "third"]));
    expect(await reload()).toBe(server.processes);
    for (let i = 0; i < 8; i++) expect(await modelIds()).toEqual(["second", "third"]);
    for (const path of ["/", "/openapi.json"]) {
      const page = await (await fetch(server.url + path, { headers: { connection: "close" } })).text();
      expect(page).toMatch(/"model": "second"/);
      expect(page).not.toContain(`"first"`);
    }

    expect(await priceVersions()).toEqual(["first 1", "second 1", "third 1"]);
    write("models.yaml", modelsYaml(["second", "third"]).replace("input_micros_per_million_tokens: 1", "$&0"));
    expect(await reload()).toBe(server.processes);
    expect(await priceVersions()).toEqual(["first 1", "second 1", "second 2", "third 1"]);
  });

  test("the keys of leak reports", async () => {
    const next = createLeakReporter("next");
    expect((await sendReport(server.url, old, "[]")).status).toBe(200);
    write("leak-keys.json", leakKeysFile(next));
    await reload();
    expect(logged('"keys":1,"msg":"reloaded keys of leak reports"')).toBeGreaterThan(0);
    for (let i = 0; i < 4; i++) {
      expect((await sendReport(server.url, next, "[]")).status).toBe(200);
      expect((await sendReport(server.url, old, "[]")).status).toBe(403);
    }
  });

  test("the key of an upstream; an invalid file changes nothing", async () => {
    write("key", "key-one\n");
    const settings = `{kind: openai, base_url: "${upstream.baseUrl}", api_key_file: ${join(folder.path, "key")}, model: m}`;
    const model = `{id: m, context_window: 100, max_output_tokens: 20, prices: {input: 0, output: 0}, upstream: ${settings}}`;
    write("models.yaml", `models: [${model}]`);
    expect(await reload()).toBe(server.processes);
    /** The keys of calls over new connections, so that every worker is used. */
    const keysOf = async () => {
      const before = upstream.calls.length;
      for (let i = 0; i < 8; i++) {
        const response = await fetch(`${server.url}/v1/generate`, {
          method: "POST",
          headers: { ...bearer(secret), "content-type": "application/json", connection: "close" },
          body: JSON.stringify({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "hi" }] }),
        });
        expect(response.status, await response.text()).toBe(200);
      }
      return new Set(upstream.calls.slice(before).map(({ headers }) => headers.authorization));
    };
    expect(await keysOf()).toEqual(new Set(["Bearer key-one"]));

    write("key", "two words");
    expect(await reload()).toBe(0);
    expect(server.log()).toMatch(/upstream\.api_key_file: the file \S+ contains characters/);
    expect(await keysOf()).toEqual(new Set(["Bearer key-one"]));

    write("key", "key-two");
    expect(await reload()).toBe(server.processes);
    expect(await keysOf()).toEqual(new Set(["Bearer key-two"]));
    for (const key of ["key-one", "key-two", "two words"]) expect(server.log()).not.toContain(key);
  });
});

describe("a start", () => {
  const folder = createTemporaryFolder("unreadable");
  afterAll(folder.remove);

  test("with an invalid models file exits 2 with an error, and creates no database", async () => {
    const file = join(folder.path, "models.yaml");
    writeFileSync(file, modelsYaml(["a", "a"]));
    const server = startServerProcess({ VX_DATA_DIR: folder.path, VX_MODELS: file });
    expect(await server.exited()).toBe(2);
    expect(server.stderr()).toBe(`vx: invalid models file\n${file}:3: models[1].id: "a" is used twice\n`);
    expect(server.stdout()).toBe("");
  });

  test("without the models file fails", async () => {
    const { started } = launchTestApp({ VX_DATA_DIR: folder.path, VX_MODELS: "/none.yaml" });
    await expect(started).rejects.toThrow(ModelsError);
    await expect(started).rejects.toThrow(/^VX_MODELS: \/none\.yaml cannot be read: no such file or directory \(ENOENT\)$/);
  });

  test("without the keys of leak reports fails", async () => {
    const { started } = launchTestApp({ VX_DATA_DIR: folder.path, VX_LEAK_KEYS_FILE: "/nonesuch" });
    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow("VX_LEAK_KEYS_FILE: /nonesuch cannot be read: no such file");
  });
});
