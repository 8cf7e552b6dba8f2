import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { NEVER, openRemote, PROMPT } from "./support.ts";

const TEXT = "x".repeat(200_000);
const EVENT = `data: ${JSON.stringify({ choices: [{ delta: { content: TEXT } }] })}\n\n`;
const TYPE = "Content-Type: text/event-stream\r\n\r\n";

// If a response were paused, undici would end the process with an assertion when its connection ends.
test.each([
  ["without a length", `HTTP/1.1 200 OK\r\n${TYPE}${EVENT}`],
  ["with a wrong length", `HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n${TYPE}${EVENT}`],
  [
    "in an incomplete chunk over HTTP/1.0",
    `HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n${TYPE}ffffff\r\n${EVENT}`,
  ],
])("a connection that ends %s while text is unread fails only its call", async (_, response) => {
  const server = createServer((socket) => socket.once("data", () => socket.end(response)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const upstream = openRemote({
    kind: "openai",
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    apiKeyEnv: undefined,
    model: "fake",
    timeoutMs: 5_000,
  });
  const connected = once(server, "connection");
  const events = upstream.generate({ ...PROMPT, maxTokens: 32_000 }, NEVER)[Symbol.asyncIterator]();
  const first = events.next();
  const [socket] = await connected;
  await once(socket, "close");
  expect((await first).value).toEqual({ kind: "delta", content: TEXT });
  await expect(events.next()).rejects.toMatchObject({ kind: "dropped" });
  await upstream.close();
  server.close();
});
