import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createLeakReporter, leakKeysFile, sendReport } from "../support/leak-reporter.ts";
import type { ServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { inDataFolder, ready, start, useDataFolder } from "./server-process.ts";

const [OLD, NEW] = ["old-operator-token-1", "new-operator-token-2"];

useDataFolder();

let fake: FakeUpstream;

const database = started(() => createTestDatabase());
beforeEach(async () => {
  fake = await FakeUpstream.start();
});
afterEach(() => fake.stop());

const write = (name: string, text: string) => writeFileSync(inDataFolder(name), text, { mode: 0o600 });

/** The response of an operator method. */
async function operate(adminUrl: string, token: string, method: string, body: object = {}) {
  const response = await fetch(`${adminUrl}/vx.admin.v1.AdminService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(token) },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function open(server: ServerProcess): Promise<{ url: string; adminUrl: string }> {
  const url = await server.line(ready);
  return { url, adminUrl: /"admin":"([^"]+)"/.exec(server.stderr())?.[1] ?? "" };
}

describe("VX_ADMIN_TOKEN_FILE", () => {
  test("SIGHUP replaces the tokens; two are valid at a time; an invalid file changes nothing and is not shown", async () => {
    write("tokens", `${OLD}\n`);
    const server = start({ DATABASE_URL: database.url, VX_ADMIN_TOKEN_FILE: inDataFolder("tokens") });
    const { adminUrl } = await open(server);
    expect(existsSync(inDataFolder("admin-token"))).toBe(false);
    const logged = (text: string) => server.stderr().split(text).length - 1;
    const valid = async () => {
      const answers = await Promise.all([OLD, NEW].map((token) => operate(adminUrl, token, "ListPlans")));
      return answers.map(({ status }) => status);
    };
    expect(await valid()).toEqual([200, 401]);

    write("tokens", `${OLD}\r\n${NEW}`);
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(logged("reloaded operator tokens")).toBe(1));
    expect(await valid()).toEqual([200, 200]);

    const invalid: readonly [string, string][] = [
      [`${NEW}\n${OLD}\na-third-operator-token\n`, "must have one or two tokens"],
      [`${NEW}\nshort\n`, "tokens:2: a token must have 16 to 512 visible ASCII characters"],
      ["", "must have one or two tokens"],
    ];
    for (const [i, [text, problem]] of invalid.entries()) {
      write("tokens", text);
      server.child.kill("SIGHUP");
      await vi.waitFor(() => expect(logged("reloading operator tokens failed")).toBe(i + 1));
      expect(logged(problem)).toBeGreaterThan(0);
    }
    expect(await valid()).toEqual([200, 200]);
    expect(logged("can access a file with a secret")).toBe(0);

    write("tokens", `${NEW}\n`);
    chmodSync(inDataFolder("tokens"), 0o644);
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(logged("reloaded operator tokens")).toBe(2));
    expect(await valid()).toEqual([401, 200]);
    expect(server.stderr()).toMatch(/"mode":"0644".*can access a file with a secret/);
    for (const token of [OLD, NEW, "third"]) expect(server.stderr()).not.toContain(token);
  });

  test.each([
    [
      { VX_ADMIN_TOKEN: OLD, VX_ADMIN_TOKEN_FILE: "/nonesuch" },
      "VX_ADMIN_TOKEN, VX_ADMIN_TOKEN_FILE: set one of them",
    ],
    [
      { VX_ADMIN_TOKEN_FILE: "/nonesuch" },
      "VX_ADMIN_TOKEN_FILE: /nonesuch cannot be read: no such file or directory (ENOENT)",
    ],
    [{ VX_ADMIN_TOKEN_FILE: "tokens", VX_METRICS_TOKEN: NEW }, "VX_METRICS_TOKEN: must not be a token in"],
  ])("the server does not start with %o", async (env, problem) => {
    write("tokens", `${OLD}\n${NEW}\n`);
    const file = env.VX_ADMIN_TOKEN_FILE === "tokens" ? { VX_ADMIN_TOKEN_FILE: inDataFolder("tokens") } : {};
    const server = start({ DATABASE_URL: database.url, ...env, ...file });
    expect(await server.exited()).toBe(2);
    expect(server.stderr()).toContain(problem);
  });
});

describe.each([1, 2])("VX_LEAK_KEYS_FILE with %i server process(es)", (workers) => {
  test("SIGHUP replaces the keys, and a file that cannot be read stops the start", async () => {
    const [old, next] = [createLeakReporter("old"), createLeakReporter("next")];
    write("leak-keys.json", leakKeysFile(old));
    const env = { DATABASE_URL: database.url, VX_WORKERS: String(workers) };
    const server = start({ ...env, VX_LEAK_KEYS_FILE: inDataFolder("leak-keys.json") });
    const { url } = await open(server);
    expect((await sendReport(url, old, "[]")).status).toBe(200);
    write("leak-keys.json", leakKeysFile(next));
    server.child.kill("SIGHUP");
    // Each worker, and the process that starts them.
    const processes = workers === 1 ? 1 : workers + 1;
    const reloads = () => server.stderr().split("reloaded keys of leak reports").length - 1;
    await vi.waitFor(() => expect(reloads()).toBe(processes));
    expect((await sendReport(url, next, "[]")).status).toBe(200);
    expect((await sendReport(url, old, "[]")).status).toBe(403);

    const refused = start({ ...env, VX_LEAK_KEYS_FILE: "/nonesuch" });
    expect(await refused.exited()).toBe(2);
    expect(refused.stderr()).toContain("VX_LEAK_KEYS_FILE: /nonesuch cannot be read: no such file");
  });
});

describe.each([1, 2])("api_key_file with %i server process(es)", (workers) => {
  test("SIGHUP replaces the key of an upstream; an invalid file changes nothing", async () => {
    write("key", "key-one\n");
    const upstream = `{kind: openai, base_url: "${fake.baseUrl}", api_key_file: ${inDataFolder("key")}, model: m}`;
    write(
      "models.yaml",
      `models: [{id: m, context_window: 100, max_output_tokens: 20, prices: {input: 0, output: 0}, upstream: ${upstream}}]`,
    );
    const server = start({
      DATABASE_URL: database.url,
      VX_WORKERS: String(workers),
      VX_ADMIN_TOKEN: OLD,
      VX_MODELS: inDataFolder("models.yaml"),
    });
    const { url, adminUrl } = await open(server);
    const logged = (text: string) => server.stderr().split(text).length - 1;
    const created = await operate(adminUrl, OLD, "CreateAccount", { name: "rotation", plan: "scale" });
    const { id } = created.body.account as { id: string };
    const { body } = await operate(adminUrl, OLD, "CreateKey", { accountId: id, name: "rotation" });
    /** The keys of calls over new connections, so that every worker is used. */
    const keysOf = async () => {
      const before = fake.calls.length;
      for (let i = 0; i < 4 * workers; i++) {
        const response = await fetch(`${url}/v1/generate`, {
          method: "POST",
          headers: {
            ...bearer(String(body.secret)),
            "content-type": "application/json",
            connection: "close",
          },
          body: JSON.stringify({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "hi" }] }),
        });
        expect(response.status, await response.text()).toBe(200);
      }
      return new Set(fake.calls.slice(before).map(({ headers }) => headers.authorization));
    };
    expect(await keysOf()).toEqual(new Set(["Bearer key-one"]));
    const processes = workers === 1 ? 1 : workers + 1;

    write("key", "two words");
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(logged("reloading models failed")).toBe(processes));
    expect(server.stderr()).toMatch(/upstream\.api_key_file: the file \S+ contains characters/);
    expect(await keysOf()).toEqual(new Set(["Bearer key-one"]));

    write("key", "key-two");
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(logged("reloaded models")).toBe(processes));
    expect(await keysOf()).toEqual(new Set(["Bearer key-two"]));
    for (const key of ["key-one", "key-two", "two words"]) expect(server.stderr()).not.toContain(key);
  });
});
