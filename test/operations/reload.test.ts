import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ConfigError } from "../../src/app/start-error.ts";
import { ModelsError } from "../../src/models/problems.ts";
import { type LaunchedApp, launchTestApp, OPERATOR_TOKEN } from "../support/app.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createLeakReporter, leakKeysFile, sendReport } from "../support/leak-reporter.ts";
import { modelsYaml } from "../support/models.ts";
import { startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { generate } from "./server-process.ts";

describe("a reload reads", () => {
  const folder = createTemporaryFolder("reload");
  const old = createLeakReporter("old");
  let database: TestDatabase;
  let upstream: FakeUpstream;
  let server: LaunchedApp;
  let url: string;
  let secret: string;

  const write = (name: string, text: string) => writeFileSync(join(folder.path, name), text);
  const logged = (text: string) => server.logText().split(text).length - 1;

  /** Returns whether the models were accepted. */
  async function reload(): Promise<boolean> {
    const accepted = logged("reloaded models");
    await (await server.started).reload();
    return logged("reloaded models") > accepted;
  }

  beforeAll(async () => {
    [database, upstream] = await Promise.all([createTestDatabase(), FakeUpstream.start()]);
    write("models.yaml", modelsYaml(["first"]));
    write("leak-keys.json", leakKeysFile(old));
    server = launchTestApp({
      DATABASE_URL: database.url,
      VX_DATA_DIR: folder.path,
      VX_ADMIN_TOKEN: OPERATOR_TOKEN,
      VX_SEED_DEMO: "1",
      VX_MODELS: join(folder.path, "models.yaml"),
      VX_LEAK_KEYS_FILE: join(folder.path, "leak-keys.json"),
    });
    ({ url } = await server.started);
    secret = server.demoKey();
  });
  afterAll(async () => {
    await server.end();
    await upstream.stop();
    await database.drop();
    folder.remove();
  });

  async function modelIds(): Promise<string[]> {
    const answer = await fetch(`${url}/v1/models`, { headers: bearer(secret) });
    const { data } = (await answer.json()) as { data: { id: string }[] };
    return data.map(({ id }) => id);
  }

  /** The registered price versions. */
  async function priceVersions(): Promise<string[]> {
    const rows = await database.owner<{ text: string }[]>`
      SELECT format('%s %s', model, version) AS text FROM vx.price_versions ORDER BY model, version`;
    return rows.map(({ text }) => text);
  }

  test("the models; changed prices become one version; an invalid file changes nothing and is logged", async () => {
    expect(await modelIds()).toEqual(["first"]);
    expect(server.printed.join()).toContain('{"model": "first", "messages"');
    expect(await (await fetch(url)).text()).toContain('"model": "first"');

    write("models.yaml", "models: [{id: second}]");
    expect(await reload()).toBe(false);
    expect(logged("reloading models failed")).toBe(1);
    expect(server.logText()).toContain("models.yaml:1: models[0].context_window: is missing");
    expect(await modelIds()).toEqual(["first"]);

    write("models.yaml", modelsYaml(["second", "third"]));
    expect(await reload()).toBe(true);
    expect(await modelIds()).toEqual(["second", "third"]);
    for (const path of ["/", "/openapi.json"]) {
      const page = await (await fetch(url + path)).text();
      expect(page).toMatch(/"model": "second"/);
      expect(page).not.toContain(`"first"`);
    }

    expect(await priceVersions()).toEqual(["first 1", "second 1", "third 1"]);
    write("models.yaml", modelsYaml(["second", "third"]).replace("input_micros_per_million_tokens: 1", "$&0"));
    expect(await reload()).toBe(true);
    expect(await priceVersions()).toEqual(["first 1", "second 1", "second 2", "third 1"]);
  });

  test("the keys of leak reports", async () => {
    const next = createLeakReporter("next");
    expect((await sendReport(url, old, "[]")).status).toBe(200);
    write("leak-keys.json", leakKeysFile(next));
    await reload();
    expect(logged('"keys":1,"msg":"reloaded keys of leak reports"')).toBeGreaterThan(0);
    expect((await sendReport(url, next, "[]")).status).toBe(200);
    expect((await sendReport(url, old, "[]")).status).toBe(403);
  });

  test("the key of an upstream; an invalid file changes nothing", async () => {
    write("key", "key-one\n");
    const settings = `{kind: openai, base_url: "${upstream.baseUrl}", api_key_file: ${join(folder.path, "key")}, model: m}`;
    const model = `{id: m, context_window: 100, max_output_tokens: 20, prices: {input: 0, output: 0}, upstream: ${settings}}`;
    write("models.yaml", `models: [${model}]`);
    expect(await reload()).toBe(true);
    const keyOfCall = async () => {
      const response = await generate(url, secret, { model: "m", max_tokens: 5 });
      expect(response.status, await response.text()).toBe(200);
      return upstream.calls.at(-1)?.headers.authorization;
    };
    expect(await keyOfCall()).toBe("Bearer key-one");

    write("key", "two words");
    expect(await reload()).toBe(false);
    expect(server.logText()).toMatch(/upstream\.api_key_file: the file \S+ contains characters/);
    expect(await keyOfCall()).toBe("Bearer key-one");

    write("key", "key-two");
    expect(await reload()).toBe(true);
    expect(await keyOfCall()).toBe("Bearer key-two");
    for (const key of ["key-one", "key-two", "two words"]) expect(server.logText()).not.toContain(key);
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
