import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { unusedPort } from "../support/unused-port.ts";
import { type Env, ended, refused, spawnVx, startVx, vx, words } from "./support.ts";

const TOKEN = { VX_ADMIN_TOKEN: "a-token-of-some-length" };
const CREDIT = words("accounts credit acct_1 25.00 --reason 'invoice 1001'");
const RETRY = /--idempotency-key [0-9a-f-]{36}\n$/;

/** The environment of a command that reaches a server with this behaviour. */
async function listenWith(onConnection: (socket: Socket) => void): Promise<Env> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => undefined));
    onConnection(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { ...TOKEN, VX_ADMIN_PORT: String((server.address() as AddressInfo).port) };
}

/** A server that answers with an HTTP error. */
const answering = (head: string, body = "") =>
  listenWith((socket) =>
    socket.once("data", () =>
      socket.end(`HTTP/1.1 404 Not Found\r\n${head}content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`),
    ),
  );

/** Starts a command, and interrupts it when the server, which does not answer, has its call. */
async function interrupt(args: readonly string[]): Promise<ChildProcess> {
  const asked = Promise.withResolvers<void>();
  const child = startVx(args, await listenWith((socket) => socket.once("data", () => asked.resolve())));
  void asked.promise.then(() => child.kill("SIGINT"));
  return child;
}

describe("without a response", () => {
  test("the error contains the address of the server", async () => {
    const port = String(await unusedPort());
    const outcome = await vx(["plans", "list", "--json"], { ...TOKEN, VX_ADMIN_PORT: port });
    refused(outcome, new RegExp(`^vx: cannot connect to http://127\\.0\\.0\\.1:${port} .*vx serve`));
  });

  test("a credit that cannot connect prints an idempotency key for a retry", async () => {
    const env = { ...TOKEN, VX_ADMIN_PORT: String(await unusedPort()) };
    refused(await vx(CREDIT, env), RETRY);
    refused(await vx([...CREDIT, "--idempotency-key", "my key's"], env), /--idempotency-key 'my key'\\''s'\n$/);
  });

  test("a credit whose connection breaks prints an idempotency key for a retry", async () => {
    const env = await listenWith((socket) => socket.once("data", () => socket.resetAndDestroy()));
    refused(await vx(CREDIT, env), RETRY);
  });

  test("a credit that is interrupted prints an idempotency key for a retry", async () => {
    const outcome = await ended(await interrupt(CREDIT));
    refused(outcome, /^vx: the call was cancelled; .*--idempotency-key [0-9a-f-]{36}\n$/);
  });

  test("a server that is not vx is an error", async () => {
    const error = /^vx: http:\/\/127\.0\.0\.1:\d+ is not the operator listener of a vx server \(HTTP 404\)\. Set VX_ADMIN_HOST/;
    refused(await vx(["audit"], await answering("")), error);
  });

  test("an error without a message, as from the public listener, is described by its code", async () => {
    const env = await answering("content-type: application/json\r\n", JSON.stringify({ code: "unimplemented" }));
    const error = /of a vx server \("Unimplemented" without a message\)\. Set VX_ADMIN_HOST/;
    refused(await vx(["plans", "list"], env), error);
  });
});

describe("without an operator token", () => {
  const folder = createTemporaryFolder("no-token");
  afterAll(folder.remove);
  const list = () => vx(["plans", "list"], { VX_DATA_DIR: folder.path });

  test("the error names the settings; a file without a valid token is not sent", async () => {
    refused(await list(), new RegExp(`^vx: ${folder.path} has no file admin-token; set VX_ADMIN_TOKEN, or VX_DATA_DIR`));
    writeFileSync(join(folder.path, "admin-token"), "two\nlines\n");
    refused(await list(), /^vx: the file admin-token in .* has no valid token/);
  });
});

test("serve with an unreachable database is a one-line error", async () => {
  const database = `postgres://owner:secret@127.0.0.1:${await unusedPort()}/vx`;
  const env = { DATABASE_URL: database, VX_DATABASE_WAIT: "0", ...TOKEN };
  refused(await spawnVx(["serve"], env), /^vx: the database cannot be reached(?!.*secret)/);
});

test("a signal ends the watch for events", async () => {
  expect(await once(await interrupt(["events", "watch"]), "exit")).toEqual([null, "SIGINT"]);
});

test("closed output ends the command without an error", async () => {
  const child = startVx(["--help"], {});
  child.stdout?.destroy();
  const [code] = await once(child, "exit");
  expect(code).toBe(0);
});
