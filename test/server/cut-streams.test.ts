import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ApiCall } from "../../src/api/define-service.ts";
import { testFile } from "../rest/descriptors.ts";
import { type Mounted, mount } from "../rest/mount.ts";
import { onAbort } from "../support/on-abort.ts";

const file = testFile(
  { Text: ["string text"] },
  {
    // biome-ignore format: a method a line
    Watch: { input: "Text", output: "Text", streams: true, http: { pattern: { case: "post", value: "/v1/watch" }, body: "*" } },
    Reply: { input: "Text", output: "Text", http: { pattern: { case: "get", value: "/v1/reply" } } },
  },
);

const STREAMS = 100;
/** A turn starts the end of four calls. */
const MAX_ENDS_PER_TURN = 8;

let server: Mounted;
/** Lets each stream send one more message. */
const continuations: (() => void)[] = [];

beforeEach(async () => {
  continuations.length = 0;
  server = await mount(file, { methods: { watch: watchText, reply: async () => ({ text: "served" }) } });
});
afterEach(() => server.stop());

/** Sends one message, and another one when the test continues the stream. Like a generation, it ends when its call is aborted. */
function watchText(_request: never, { signal }: ApiCall): AsyncIterableIterator<unknown> {
  const message = { done: false, value: { text: "open" } } as const;
  let isFirst = true;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      if (!isFirst)
        return new Promise((resolve, reject) => {
          continuations.push(() => resolve(message));
          onAbort(signal, () => reject(signal.reason));
        });
      isFirst = false;
      return Promise.resolve(message);
    },
    return: async () => ({ done: true, value: undefined }),
  };
}

async function openHttp1(): Promise<() => void> {
  const sockets = await Promise.all(
    Array.from({ length: STREAMS }, async () => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
      const head = "POST /v1/watch HTTP/1.1\r\nhost: vx\r\ncontent-type: application/json\r\ncontent-length: 2\r\n";
      socket.write(`${head}\r\n{}`);
      await once(socket, "data");
      return socket;
    }),
  );
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

async function openHttp2(path: string, contentType: string, body: Buffer): Promise<() => void> {
  const session = connectHttp2(server.url);
  await Promise.all(
    Array.from({ length: STREAMS }, async () => {
      const stream = session.request({ ":method": "POST", ":path": path, "content-type": contentType });
      stream.on("error", () => undefined).end(body);
      await once(stream, "data");
    }),
  );
  return () => session.destroy();
}

const OPEN = [
  ["REST over HTTP/1.1", () => openHttp1()],
  ["REST over HTTP/2", () => openHttp2("/v1/watch", "application/json", Buffer.from("{}"))],
  ["gRPC", () => openHttp2(`/${file.service.typeName}/Watch`, "application/grpc", Buffer.alloc(5))],
] as const;

/** The number of calls that ended in each turn, until all have ended. */
async function endsPerTurn(): Promise<number[]> {
  const perTurn: number[] = [];
  for (let before = 0; before < STREAMS; ) {
    await nextTurn();
    const now = server.ended.length;
    if (now > before) perTurn.push(now - before);
    before = now;
  }
  return perTurn;
}

test.each(OPEN)("a turn ends a few of the streams that are cut at once: %s", async (_name, open) => {
  const cut = await open();
  const counting = endsPerTurn();
  cut();
  expect(Math.max(...(await counting))).toBeLessThanOrEqual(MAX_ENDS_PER_TURN);
});

test.each(OPEN)("the same if all have another message: %s", async (_name, open) => {
  const cut = await open();
  const counting = endsPerTurn();
  cut();
  while (server.ended.length === 0) await nextTurn();
  for (const next of continuations) next();
  expect(Math.max(...(await counting))).toBeLessThanOrEqual(MAX_ENDS_PER_TURN);
});

test.each(OPEN)("a request is served before the streams that were cut before: %s", async (_name, open) => {
  const other = connect(Number(new URL(server.url).port), "127.0.0.1");
  await once(other, "connect");
  const cut = await open();
  cut();
  while (server.ended.length === 0) await nextTurn();
  other.write("GET /v1/reply HTTP/1.1\r\nhost: vx\r\n\r\n");
  const [response] = (await once(other, "data")) as [Buffer];
  expect(String(response)).toContain("served");
  expect(server.ended.length).toBeLessThan(STREAMS);
  other.destroy();
});
