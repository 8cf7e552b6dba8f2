import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { NEVER, openRemote, PROMPT } from "./support.ts";

const TYPE = "Content-Type: text/event-stream\r\n\r\n";
const UNREAD = "x".repeat(200_000);
const event = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

// If a response were paused, undici would end the process with an assertion when its connection ends.
test.each([
  ["without a length", "HTTP/1.1 200 OK\r\n", ""],
  ["with a wrong length", "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n", ""],
  ["in an incomplete chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", "ffffff\r\n"],
  ["in an incomplete chunk of HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n", "ffffff\r\n"],
])("a connection that ends %s while text is unread fails only its call", async (_, head, chunk) => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const upstream = openRemote({ kind: "openai", baseUrl, apiKeyEnv: undefined, model: "m", timeoutMs: 5_000 });
  const events = upstream.generate({ ...PROMPT, maxTokens: 32_000 }, NEVER)[Symbol.asyncIterator]();
  const first = events.next();
  const [socket] = (await once(server, "connection")) as [Socket];
  await once(socket, "data");
  socket.write(`${head}${TYPE}${chunk}${event("first")}`);
  expect((await first).value).toEqual({ kind: "text", text: "first" });
  socket.end(event(UNREAD));
  await once(socket, "close");
  expect((await events.next()).value).toEqual({ kind: "text", text: UNREAD });
  await expect(events.next()).rejects.toMatchObject({ kind: "dropped" });
  await upstream.close();
  server.close();
});
