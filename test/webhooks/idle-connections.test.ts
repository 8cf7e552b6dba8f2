import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AddressRanges } from "../../src/domain/network.ts";
import { DeliveryAddresses } from "../../src/webhooks/addresses.ts";
import { Sender } from "../../src/webhooks/sender.ts";

// Only timers are simulated: the connections are real.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

test("an idle connection closes after half a minute, although the endpoint asks for ten", async () => {
  let connections = 0;
  const server = createServer((_, response) => {
    response.writeHead(204, { "keep-alive": "timeout=600" }).end();
  });
  server.keepAliveTimeout = 0;
  server.on("connection", () => connections++);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const sender = new Sender(new DeliveryAddresses(new AddressRanges("127.0.0.1/32"), () => false), "test", Date.now);
  const { port } = server.address() as AddressInfo;
  const endpoint = {
    url: `http://127.0.0.1:${port}/`,
    secrets: "whsec_RXhhbXBsZUV4YW1wbGVFeGFtcGxlRXhhbXBsZUV4YW0=",
  };
  const send = async () => {
    const sending = sender.send(endpoint, "evt_1", "{}", new AbortController().signal);
    // Undici looks at an idle connection in a timer before it is used.
    await vi.advanceTimersByTimeAsync(10);
    return await sending;
  };
  expect((await send()).status).toBe(204);
  await vi.advanceTimersByTimeAsync(25_000);
  expect((await send()).status).toBe(204);
  expect(connections).toBe(1);
  await vi.advanceTimersByTimeAsync(32_000);
  expect((await send()).status).toBe(204);
  expect(connections).toBe(2);
  await sender.close();
  server.close();
});
