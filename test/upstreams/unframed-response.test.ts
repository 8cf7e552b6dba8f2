import { expect, test } from "vitest";
import { Exchange } from "../../src/upstreams/http/exchange.ts";
import { createOpenaiDialect } from "../../src/upstreams/openai.ts";
import { Progress } from "../../src/upstreams/progress.ts";

/** Undici throws an uncaught assertion if a connection that is not kept alive ends while it is paused. */
test.each([
  [{ "transfer-encoding": "chunked" }, 1],
  [{ "transfer-encoding": "chunked", connection: "close" }, 0],
  [{ "content-length": "100000" }, 0],
  [{}, 0],
])("a response with the headers %j is paused %d times for a slow reader", (headers, pauses) => {
  let paused = 0;
  const controller = {
    aborted: false,
    paused: false,
    reason: null,
    rawHeaders: null,
    rawTrailers: null,
    abort: () => undefined,
    pause: () => void paused++,
    resume: () => undefined,
  };
  const exchange = new Exchange(
    createOpenaiDialect({ baseUrl: "http://localhost/v1" }),
    10_000,
    new Progress(),
  );
  exchange.onRequestStart(controller);
  exchange.onResponseStart(controller, 200, { ...headers, "content-type": "text/event-stream" });
  const choices = [{ delta: { content: "x".repeat(70_000) } }];
  exchange.onResponseData(controller, Buffer.from(`data: ${JSON.stringify({ choices })}\n\n`));
  expect(exchange.reply.unreadChars).toBe(70_000);
  expect(paused).toBe(pauses);
});
