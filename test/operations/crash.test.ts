import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { getMe, inDataFolder, isAlive, ready, start, useDataFolder, workersOf } from "./server-process.ts";

useDataFolder();

let env: Record<string, string>;

/** SIGUSR2 raises an uncaught exception, SIGWINCH an unhandled rejection. */
const PRELOAD = `data:text/javascript,${encodeURIComponent(`
  process.on("SIGUSR2", () => { throw new Error("planted exception"); });
  process.on("SIGWINCH", () => { Promise.reject(new Error("planted rejection")); });`)}`;

const database = started(() => createTestDatabase());
beforeAll(() => {
  env = { DATABASE_URL: database.url, NODE_OPTIONS: `--import ${PRELOAD}` };
});

/** The key of the demo account, which the first start creates. */
let secret: string | undefined;

async function startWith(more: Record<string, string>, stderr?: number) {
  const seeded = secret === undefined ? { VX_SEED_DEMO: "1" } : {};
  const server = start({ ...env, ...seeded, ...more }, stderr === undefined ? {} : { stderr });
  const url = await server.line(ready);
  secret ??= await server.line(/(vx_live_\w+)/);
  return { server, url, secret };
}

describe("after an uncaught exception", () => {
  test("and an unhandled rejection, running calls finish, and the exit code is 1", async () => {
    const { server, url, secret } = await startWith({});
    const body = {
      model: "vx-sandbox-small",
      messages: [{ role: "user", content: "[[tokens=10 delay_ms=50]]" }],
      stream: true,
    };
    const answer = await fetch(`${url}/v1/generate`, {
      method: "POST",
      headers: { "content-type": "application/json", ...bearer(secret) },
      body: JSON.stringify(body),
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    // The process continues with both signals, so that it has not exited before the second one.
    for (const signal of ["SIGSTOP", "SIGWINCH", "SIGUSR2", "SIGCONT"] as const) server.child.kill(signal);
    let text = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += Buffer.from(part.value).toString();
    expect(text).toMatch(/"done"[\s\S]*\[DONE\]\n\n$/);
    expect(await server.exited()).toBe(1);
    const lines = server.stderr().split("\n");
    const linesWith = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).length;
    expect(linesWith(/planted exception.*"msg":"uncaught exception"/)).toBe(1);
    expect(linesWith(/planted rejection.*"msg":"unhandled rejection"/)).toBe(1);
    expect(linesWith(/"msg":"stopped"/)).toBe(1);
  });

  test("or an unhandled rejection, the worker is replaced at once, and the others continue", async () => {
    const { server, url, secret } = await startWith({ VX_WORKERS: "2" });
    const [crashed = 0, other] = workersOf(server.child.pid as number);
    process.kill(crashed, "SIGWINCH");
    await vi.waitFor(() => expect(isAlive(crashed)).toBe(false));
    await vi.waitFor(() => expect(workersOf(server.child.pid as number)).toHaveLength(2));
    expect(workersOf(server.child.pid as number)).toContain(other);
    expect(server.stderr()).toMatch(/planted rejection.*"msg":"unhandled rejection"/);
    expect(server.stderr()).toContain("worker crashed, starting another one");
    expect(server.stderr()).not.toContain("worker exited");
    expect(await getMe(url, secret)).toMatchObject({ status: 200 });
    expect(await server.end("SIGTERM")).toBe(0);
  });
});

describe("a log that is not writable", () => {
  test("on a full disk the server serves calls, and a crash exits with 1", async () => {
    const full = openSync("/dev/full", "w");
    const { server, url, secret } = await startWith({}, full);
    closeSync(full);
    expect(await getMe(url, secret)).toMatchObject({ status: 200 });
    expect(await server.end("SIGUSR2")).toBe(1);
  });

  test("with stdout and stderr closed, the server serves calls and exits with 0 on SIGTERM", async () => {
    const { server, url, secret } = await startWith({});
    for (const output of [server.child.stdout, server.child.stderr]) {
      output?.destroy();
      if (output) await once(output, "close");
    }
    for (let i = 0; i < 3; i++) expect(await getMe(url, secret)).toMatchObject({ status: 200 });
    expect(await server.end("SIGTERM")).toBe(0);
  });

  test("with a stalled stderr reader, the server serves calls and exits with 0 on SIGTERM", async () => {
    const path = inDataFolder("fifo");
    execFileSync("mkfifo", [path]);
    const pipe = openSync(path, constants.O_RDWR);
    // Everything that the pipe buffered.
    writeSync(pipe, Buffer.alloc(65_536));
    const { server, url, secret } = await startWith({}, pipe);
    for (let i = 0; i < 3; i++) expect(await getMe(url, secret)).toMatchObject({ status: 200 });
    expect(await server.end("SIGTERM")).toBe(0);
    closeSync(pipe);
  });
});
