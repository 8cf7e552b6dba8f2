import { describe, expect, onTestFinished, test, vi } from "vitest";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { createTestDatabase } from "../support/database.ts";
import { createModelsFile, modelsYaml } from "../support/models.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { started } from "../support/started.ts";
import { childrenOf, isAlive, ready, start, useDataFolder } from "./server-process.ts";

useDataFolder();

const JSON_HEADERS = { "content-type": "application/json", ...bearer(OPERATOR_TOKEN) };

const database = started(() => createTestDatabase());

test("SIGTERM to npm start stops the server with exit code 0", async () => {
  const npm = start({ DATABASE_URL: database.url }, { command: ["npm", "start"] });
  await npm.line(ready);
  const servers = childrenOf(npm.child.pid as number);
  expect(servers).toHaveLength(1);
  expect(await npm.end("SIGTERM")).toBe(0);
  expect(servers.filter(isAlive)).toEqual([]);
  expect(npm.stderr()).toContain('"msg":"stopped"');
});

test("npm start exits with the exit code of the server", async () => {
  const npm = start({ PORT: "eighty" }, { command: ["npm", "start"] });
  expect(await npm.exited()).toBe(2);
  expect(npm.stderr()).toMatch(/^vx: invalid settings\nPORT: /m);
});

describe("an old Node version starts the bundled one", () => {
  // Only the first process reports an old version.
  const old = `data:text/javascript,${encodeURIComponent(`
    if (process.env.CLAIMS_TO_BE_OLD) {
      delete process.env.CLAIMS_TO_BE_OLD;
      Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } });
    }`)}`;
  const env = { CLAIMS_TO_BE_OLD: "1", NODE_OPTIONS: `--import ${old}` };

  test("which SIGHUP to the launcher reloads, and SIGINT or SIGTERM stops with exit code 0", async () => {
    const models = createModelsFile(modelsYaml(["first"]));
    onTestFinished(models.remove);
    const files = { VX_MODELS: models.path, VX_ADMIN_TOKEN: OPERATOR_TOKEN };
    const launcher = start({ DATABASE_URL: database.url, ...files, ...env });
    await launcher.line(ready);
    const servers = childrenOf(launcher.child.pid as number);
    expect(servers).toHaveLength(1);
    const logged = (text: string) => vi.waitFor(() => expect(launcher.stderr()).toContain(text));
    launcher.child.kill("SIGHUP");
    await logged('"msg":"reloaded models"');

    const body = Promise.withResolvers<string>();
    const adminUrl = launcher.adminUrl();
    const call = { path: "/vx.admin.v1.AdminService/ListPlans", headers: JSON_HEADERS };
    const running = sendHttp1(adminUrl, { ...call, body: body.promise });
    // The head of the running call was sent before.
    expect(await sendHttp1(adminUrl, { ...call, body: "{}" })).toMatchObject({ status: 200 });
    launcher.child.kill("SIGINT");
    await logged('"msg":"stopping, waiting for running calls"');
    launcher.child.kill("SIGTERM");
    await logged('"signal":"SIGTERM","msg":"already stopping');
    body.resolve("{}");
    expect(await running).toMatchObject({ status: 200 });
    expect(await launcher.exited()).toBe(0);
    expect(servers.filter(isAlive)).toEqual([]);
    await logged('"msg":"stopped"');
  });

  test("which stops after SIGKILL to the launcher", async () => {
    const launcher = start({ DATABASE_URL: database.url, ...env });
    await launcher.line(ready);
    const [server = 0] = childrenOf(launcher.child.pid as number);
    expect(await launcher.end("SIGKILL")).toBe("SIGKILL");
    await vi.waitFor(() => expect(isAlive(server)).toBe(false));
    await vi.waitFor(() => expect(launcher.stderr()).toContain('"msg":"stopped"'));
  });

  test("whose commands end although the channel to the launcher is open", async () => {
    const launcher = start(env, { command: [process.execPath, "src/vx.js", "models", "--help"] });
    expect(await launcher.exited()).toBe(0);
  });
});
