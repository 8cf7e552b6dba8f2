import { once } from "node:events";
import { expect, test } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";
import { generate, getMe, PLANTED_CRASHES, ready, restOf, start, useDataFolder } from "./server-process.ts";

useDataFolder();

const database = started(() => createTestDatabase());

/** The key of the demo account, which the first start creates. */
let secret: string | undefined;

async function startServer() {
  const VX_SEED_DEMO = secret === undefined ? "1" : "0";
  const server = start({ DATABASE_URL: database.url, NODE_OPTIONS: `--import ${PLANTED_CRASHES}`, VX_SEED_DEMO });
  const url = await server.line(ready);
  secret ??= await server.line(/(vx_live_\w+)/);
  return { server, url, secret };
}

test("after an uncaught exception and an unhandled rejection, running calls finish, and the exit code is 1", async () => {
  const { server, url, secret } = await startServer();
  const messages = [{ role: "user", content: "[[tokens=10 delay_ms=50]]" }];
  const answer = await generate(url, secret, { messages, stream: true });
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  // The process continues with both signals, so that it has not exited before the second one.
  for (const signal of ["SIGSTOP", "SIGWINCH", "SIGUSR2", "SIGCONT"] as const) server.child.kill(signal);
  expect(await restOf(reader)).toMatch(/"done"[\s\S]*\[DONE\]\n\n$/);
  expect(await server.exited()).toBe(1);
  const lines = server.stderr().split("\n");
  const linesWith = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).length;
  expect(linesWith(/planted exception.*"msg":"uncaught exception"/)).toBe(1);
  expect(linesWith(/planted rejection.*"msg":"unhandled rejection"/)).toBe(1);
  expect(linesWith(/"msg":"stopped"/)).toBe(1);
});

test("with stdout and stderr closed, the server serves calls, and a crash exits with 1", async () => {
  const { server, url, secret } = await startServer();
  for (const output of [server.child.stdout, server.child.stderr]) {
    output?.destroy();
    if (output) await once(output, "close");
  }
  for (let i = 0; i < 3; i++) expect(await getMe(url, secret)).toMatchObject({ status: 200 });
  // A write to a closed pipe is no crash.
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  expect(await server.end("SIGUSR2")).toBe(1);
});
