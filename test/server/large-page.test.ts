import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:http2";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { createHandler } from "../../src/server/handler.ts";
import { asset, pack } from "../../src/server/pages/packed.ts";
import { started } from "../support/started.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { listen } from "./listen.ts";

/** More than a connection buffers, so a response is still being sent when its caller disconnects. */
const BYTES = 16_000_000;

const folder = createTemporaryFolder("large-page");
const logged: object[] = [];

const file = join(folder.path, "large.bin");
const page = asset({
  load: async () => pack(await readFile(file)),
  contentType: "application/octet-stream",
  contentSecurityPolicy: "default-src 'none'",
});
const server = started(() => {
  writeFileSync(file, randomBytes(BYTES));
  const log = { error: (details: object) => logged.push(details) } as never;
  return listen(createHandler({ rpcs: new Map(), pages: new Map([["/large", page]]), newRequestId: () => "req_test", log }));
});
afterAll(() => folder.remove());

async function disconnectHttp1(): Promise<void> {
  const call = request(`${server.url}/large`, { agent: false }).end();
  await new Promise((resolve) => call.once("response", resolve));
  call.destroy();
}

async function disconnectHttp2(): Promise<void> {
  const session = connect(server.url);
  const stream = session.request({ ":path": "/large" });
  await new Promise((resolve) => stream.once("response", resolve));
  session.destroy();
}

test.each([
  ["HTTP/1.1", disconnectHttp1],
  ["HTTP/2", disconnectHttp2],
])("a caller that disconnects while a page is sent is not an error: %s", async (_version, disconnect) => {
  await disconnect();
  await vi.waitFor(() => expect(server.listener.running).toBe(0));
  expect(logged).toEqual([]);
});
