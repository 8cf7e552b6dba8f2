import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:http2";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createHandler } from "../../src/server/handler.ts";
import { badRequestResponses } from "../../src/server/http/bad-request.ts";
import { Listener } from "../../src/server/http/listener.ts";
import { asset, pack } from "../../src/server/pages/packed.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** More than a connection buffers, so a response is still being sent when its caller disconnects. */
const BYTES = 16_000_000;

const folder = createTemporaryFolder("large-page");
const logged: object[] = [];
let listener: Listener;
let url: string;

beforeAll(async () => {
  const file = join(folder.path, "large.bin");
  writeFileSync(file, randomBytes(BYTES));
  const page = asset({
    load: async () => pack(await readFile(file)),
    contentType: "application/octet-stream",
    contentSecurityPolicy: "default-src 'none'",
  });
  listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    handler: createHandler({
      rpcs: new Map(),
      pages: new Map([["/large", page]]),
      newRequestId: () => "req_test",
      log: { error: (details: object) => logged.push(details) } as never,
    }),
    refusals: badRequestResponses(() => "req_test"),
  });
  url = `http://127.0.0.1:${(await listener.open()).port}`;
});
afterAll(async () => {
  await listener.close(0);
  folder.remove();
});

async function disconnectHttp1(): Promise<void> {
  const call = request(`${url}/large`, { agent: false }).end();
  await new Promise((resolve) => call.once("response", resolve));
  call.destroy();
}

async function disconnectHttp2(): Promise<void> {
  const session = connect(url);
  const stream = session.request({ ":path": "/large" });
  await new Promise((resolve) => stream.once("response", resolve));
  session.destroy();
}

test.each([
  ["HTTP/1.1", disconnectHttp1],
  ["HTTP/2", disconnectHttp2],
])("a caller that disconnects while a page is sent is not an error: %s", async (_version, disconnect) => {
  await disconnect();
  await vi.waitFor(() => expect(listener.running).toBe(0));
  expect(logged).toEqual([]);
});
