import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { unusedPort } from "../support/unused-port.ts";
import { closeServer, ended, listen, refused, spawnVx, startVx, vx } from "./support.ts";

const TOKEN = "a-token-of-some-length";
const CREDIT = ["accounts", "credit", "acct_1", "25.00", "--reason", "invoice 1001"];

async function listenWith(onConnection: (socket: Socket) => void): Promise<{ VX_ADMIN_PORT: string }> {
  const sockets = new Set<Socket>();
  const server = await listen((socket) => {
    sockets.add(socket.on("error", () => undefined));
    onConnection(socket);
  });
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await closeServer(server);
  });
  return { VX_ADMIN_PORT: String((server.address() as AddressInfo).port) };
}

describe("without a response", () => {
  test("the error contains the address of the server", async () => {
    const port = String(await unusedPort());
    const env = { VX_ADMIN_TOKEN: TOKEN, VX_ADMIN_PORT: port };
    const outcome = await vx(["plans", "list", "--json"], env);
    refused(outcome, new RegExp(`^vx: cannot connect to http://127\\.0\\.0\\.1:${port} .*vx serve`));
  });

  test("a credit that cannot connect prints an idempotency key for a retry", async () => {
    const env = { VX_ADMIN_TOKEN: TOKEN, VX_ADMIN_PORT: String(await unusedPort()) };
    refused(await vx(CREDIT, env), /--idempotency-key [0-9a-f-]{36}\n$/);
    refused(await vx([...CREDIT, "--idempotency-key", "my key's"], env), /--idempotency-key 'my key'\\''s'\n$/);
  });

  test("a credit whose connection breaks prints an idempotency key for a retry", async () => {
    const port = await listenWith((socket) => socket.once("data", () => socket.resetAndDestroy()));
    refused(await vx(CREDIT, { VX_ADMIN_TOKEN: TOKEN, ...port }), /--idempotency-key [0-9a-f-]{36}\n$/);
  });

  test("a credit that is interrupted prints an idempotency key for a retry", async () => {
    const asked = Promise.withResolvers<void>();
    const port = await listenWith((socket) => socket.once("data", () => asked.resolve()));
    const child = startVx(CREDIT, { VX_ADMIN_TOKEN: TOKEN, ...port });
    const outcome = ended(child);
    await asked.promise;
    child.kill("SIGINT");
    refused(await outcome, /^vx: the call was cancelled; .*--idempotency-key [0-9a-f-]{36}\n$/);
  });

  test("a server that is not vx is an error", async () => {
    const port = await listenWith((socket) =>
      socket.once("data", () => socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")),
    );
    refused(
      await vx(["audit"], { VX_ADMIN_TOKEN: TOKEN, ...port }),
      /^vx: http:\/\/127\.0\.0\.1:\d+ is not the operator listener of a vx server \(HTTP 404\)\. Set VX_ADMIN_HOST/,
    );
  });

  test("an error without a message, as from the public listener, is described by its code", async () => {
    const body = JSON.stringify({ code: "unimplemented" });
    const port = await listenWith((socket) =>
      socket.once("data", () =>
        socket.end(
          `HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
        ),
      ),
    );
    refused(
      await vx(["plans", "list"], { VX_ADMIN_TOKEN: TOKEN, ...port }),
      /of a vx server \("Unimplemented" without a message\)\. Set VX_ADMIN_HOST/,
    );
  });
});

describe("without an operator token", () => {
  const folder = () => {
    const dataDir = mkdtempSync(join(tmpdir(), "vx-test-cli-"));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    return dataDir;
  };

  test("the error names the settings", async () => {
    const dataDir = folder();
    refused(
      await vx(["plans", "list"], { VX_DATA_DIR: dataDir }),
      new RegExp(`^vx: ${dataDir} has no file admin-token; set VX_ADMIN_TOKEN, or VX_DATA_DIR`),
    );
  });

  test("a file without a valid token is not sent", async () => {
    const dataDir = folder();
    writeFileSync(join(dataDir, "admin-token"), "two\nlines\n");
    refused(await vx(["plans", "list"], { VX_DATA_DIR: dataDir }), /^vx: the file admin-token in .* has no valid token/);
  });
});

test("serve with an unreachable database is a one-line error", async () => {
  const env = {
    DATABASE_URL: `postgres://owner:secret@127.0.0.1:${await unusedPort()}/vx`,
    VX_DATABASE_WAIT: "0",
    VX_ADMIN_TOKEN: TOKEN,
  };
  refused(await spawnVx(["serve"], env), /^vx: the database cannot be reached(?!.*secret)/);
});

test("a signal ends the watch for events", async () => {
  const asked = Promise.withResolvers<void>();
  const port = await listenWith((socket) => socket.once("data", () => asked.resolve()));
  const child = startVx(["events", "watch"], { VX_ADMIN_TOKEN: TOKEN, ...port });
  const exited = once(child, "exit");
  await asked.promise;
  child.kill("SIGINT");
  expect(await exited).toEqual([null, "SIGINT"]);
});

test("closed output ends the command without an error", async () => {
  const child = startVx(["--help"], {});
  child.stdout?.destroy();
  const [code] = await once(child, "exit");
  expect(code).toBe(0);
});
