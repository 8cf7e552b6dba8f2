import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { AdminTokens } from "../../src/app/admin-tokens.ts";
import { ConfigError } from "../../src/app/start-error.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { inDataFolder, startHere, useDataFolder } from "../operations/server-process.ts";
import { createTestDatabase } from "../support/database.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { started } from "../support/started.ts";

const [OLD, NEW] = ["old-operator-token-1", "new-operator-token-2"];

useDataFolder();

const database = started(() => createTestDatabase());

const write = (name: string, text: string) => writeFileSync(inDataFolder(name), text, { mode: 0o600 });

/** The status of an operator method. */
async function statusWith(adminUrl: string, token: string): Promise<number> {
  const { status } = await fetch(`${adminUrl}/vx.admin.v1.AdminService/ListPlans`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(token) },
    body: "{}",
  });
  return status;
}

describe("VX_ADMIN_TOKEN_FILE", () => {
  test("a token that is removed while the body of a call arrives creates no operator", async () => {
    write("late-tokens", `${OLD}\n`);
    const server = startHere({ DATABASE_URL: database.url, VX_ADMIN_TOKEN_FILE: inDataFolder("late-tokens") });
    const { adminUrl, reload } = await server.started;
    const body = Promise.withResolvers<string>();
    const late = sendHttp1(adminUrl, {
      path: "/vx.admin.v1.AdminService/CreateOperator",
      headers: { "content-type": "application/json", ...bearer(OLD) },
      body: body.promise,
    });
    // The head of the call was sent before.
    expect(await statusWith(adminUrl, OLD)).toBe(200);
    write("late-tokens", `${NEW}\n`);
    void reload();
    await vi.waitFor(() => expect(server.logText()).toContain("reloaded operator tokens"));
    body.resolve(JSON.stringify({ name: "late", role: "admin" }));
    expect((await late).status).toBe(401);
    expect(await database.owner`SELECT FROM vx.operators WHERE name = 'late'`).toHaveLength(0);
  });

  test("a reload that removes a token waits for the changes that were sent with it", async () => {
    write("used-tokens", `${OLD}\n`);
    const settings = {
      dataDir: ".",
      adminToken: undefined,
      adminTokenFile: inDataFolder("used-tokens"),
      metricsToken: undefined,
    };
    const log = createLog("silent", { write: () => undefined });
    const tokens = AdminTokens.load(settings, log);
    const order: string[] = [];
    const sent = Promise.withResolvers<void>();
    const change = tokens.whileValid(OLD, () => sent.promise).then(() => order.push("changed"));
    write("used-tokens", `${NEW}\n`);
    const reload = tokens.reload(log).then(() => order.push("reloaded"));
    await expect(tokens.whileValid(OLD, async () => undefined)).rejects.toMatchObject({ reason: "invalid_operator_token" });
    sent.resolve();
    await Promise.all([change, reload]);
    expect(order).toEqual(["changed", "reloaded"]);
  });

  test("a reload replaces the tokens; two are valid at a time; an invalid file changes nothing and is not shown", async () => {
    write("tokens", `${OLD}\n`);
    const server = startHere({ DATABASE_URL: database.url, VX_ADMIN_TOKEN_FILE: inDataFolder("tokens") });
    const { adminUrl, reload } = await server.started;
    expect(existsSync(inDataFolder("admin-token"))).toBe(false);
    const logged = (text: string) => server.logText().split(text).length - 1;
    const valid = () => Promise.all([OLD, NEW].map((token) => statusWith(adminUrl, token)));
    expect(await valid()).toEqual([200, 401]);

    write("tokens", `${OLD}\r\n${NEW}`);
    void reload();
    await vi.waitFor(() => expect(logged("reloaded operator tokens")).toBe(1));
    expect(await valid()).toEqual([200, 200]);

    const invalid: readonly [string, string][] = [
      [`${NEW}\n${OLD}\na-third-operator-token\n`, "must have one or two tokens"],
      [`${NEW}\nshort\n`, "tokens:2: a token must have 16 to 512 visible ASCII characters"],
      ["", "must have one or two tokens"],
    ];
    for (const [i, [text, problem]] of invalid.entries()) {
      write("tokens", text);
      void reload();
      await vi.waitFor(() => expect(logged("reloading operator tokens failed")).toBe(i + 1));
      expect(logged(problem)).toBeGreaterThan(0);
    }
    expect(await valid()).toEqual([200, 200]);
    expect(logged("can access a file with a secret")).toBe(0);

    write("tokens", `${NEW}\n`);
    chmodSync(inDataFolder("tokens"), 0o644);
    void reload();
    await vi.waitFor(() => expect(logged("reloaded operator tokens")).toBe(2));
    expect(await valid()).toEqual([401, 200]);
    expect(server.logText()).toMatch(/"mode":"0644".*can access a file with a secret/);
    for (const token of [OLD, NEW, "third"]) expect(server.logText()).not.toContain(token);
  });

  test.each([
    [{ VX_ADMIN_TOKEN: OLD, VX_ADMIN_TOKEN_FILE: "/nonesuch" }, "VX_ADMIN_TOKEN, VX_ADMIN_TOKEN_FILE: set one of them"],
    [{ VX_ADMIN_TOKEN_FILE: "/nonesuch" }, "VX_ADMIN_TOKEN_FILE: /nonesuch cannot be read: no such file or directory (ENOENT)"],
    [{ VX_ADMIN_TOKEN_FILE: "tokens", VX_METRICS_TOKEN: NEW }, "VX_METRICS_TOKEN: must not be a token in"],
  ])("the server does not start with %o", async (env, problem) => {
    write("tokens", `${OLD}\n${NEW}\n`);
    const file = env.VX_ADMIN_TOKEN_FILE === "tokens" ? { VX_ADMIN_TOKEN_FILE: inDataFolder("tokens") } : {};
    const start = async () => await startHere({ DATABASE_URL: database.url, ...env, ...file }).started;
    const error = await start().catch((problem: unknown) => problem);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as Error).message).toContain(problem);
  });
});
