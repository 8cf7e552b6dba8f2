import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Line } from "./line.ts";

let server: Server;
let line: Line;
let client: Socket;
let heard: string;

/** Returns every chunk in capitals. */
beforeEach(async () => {
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => socket.write(chunk.toString().toUpperCase()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  line = await Line.start({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" });
  client = connect(line.port, "127.0.0.1");
  client.on("error", () => undefined);
  await once(client, "connect");
  heard = "";
  client.on("data", (chunk) => {
    heard += chunk.toString();
  });
});
afterEach(async () => {
  client.destroy();
  await line.stop();
  server.close();
});

async function say(text: string, expected: string): Promise<void> {
  client.write(text);
  while (heard !== expected) await once(client, "data");
}

/** The code of the error that ends a connection. */
function endOf(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    socket.once("close", () => resolve(undefined));
  });
}

test("under normal conditions bytes are forwarded in both directions", async () => {
  await say("abc", "ABC");
});

test.each([{ sliceBytes: 1 }, { latencyMs: 20 }])("with %o bytes are forwarded in order", async (conditions) => {
  line.set(conditions);
  await say("abcdefgh", "ABCDEFGH");
});

test("held bytes are sent without loss when the conditions change", async () => {
  await say("a", "A");
  line.set({ holdsBack: true });
  client.write("bc");
  while (line.heldBackBytes < 2) await new Promise((resolve) => setImmediate(resolve));
  expect(heard).toBe("A");
  line.set({});
  while (heard !== "ABC") await once(client, "data");
});

test("the replies on connections with one application name are held, and those on others are not", async () => {
  await say("user\0x\0application_name\0some\0", "USER\0X\0APPLICATION_NAME\0SOME\0");
  heard = "";
  line.holdReplies("other");
  await say("a", "A");
  const release = line.holdReplies("some");
  client.write("bc");
  while (line.heldBackBytes < 2) await new Promise((resolve) => setImmediate(resolve));
  expect(heard).toBe("A");
  release();
  while (heard !== "ABC") await once(client, "data");
});

test("a cut resets the connection", async () => {
  await say("a", "A");
  const ended = endOf(client);
  line.cut();
  expect(await ended).toBe("ECONNRESET");
});

test("a connection that dropped bytes is reset when the conditions change", async () => {
  await say("a", "A");
  line.set({ swallows: true });
  const ended = endOf(client);
  client.write("lost");
  while (!line.hasSwallowed) await new Promise((resolve) => setImmediate(resolve));
  expect(heard).toBe("A");
  line.set({});
  expect(await ended).toBe("ECONNRESET");
});

test("new connections are reset while connections are refused", async () => {
  line.set({ refuses: true });
  const late = connect(line.port, "127.0.0.1");
  expect(await endOf(late)).toBe("ECONNRESET");
});
