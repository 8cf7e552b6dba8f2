import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const MEBIBYTE = 1_048_576;
const CALLS = 64;
const BODY_BYTES = 31 * MEBIBYTE;

const folder = createTemporaryFolder("memory");
let database: TestDatabase;
let server: ServerProcess;
let url: string;
let secret: string;

beforeAll(async () => {
  database = await createTestDatabase();
  server = startServerProcess({ DATABASE_URL: database.url, VX_DATA_DIR: folder.path, VX_SEED_DEMO: "1", VX_LOG_LEVEL: "warn" });
  secret = await server.line(/(vx_live_\w+)/);
  url = await server.line(/^vx ready on (\S+)$/m);
});
afterAll(async () => {
  await server.end("SIGTERM");
  await database.drop();
  folder.remove();
});

/** The peak resident memory of the server. */
function peakMiB(): number {
  const status = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1_024;
}

test.skipIf(process.platform !== "linux")(
  `${CALLS} concurrent bodies of 31 MiB take at most half their size in memory, and a small call succeeds`,
  async () => {
    const rest = Promise.withResolvers<void>();
    const sent: Promise<void>[] = [];
    const calls = Array.from({ length: CALLS }, () => {
      const taken = Promise.withResolvers<void>();
      sent.push(taken.promise);
      return sendAllButTheEnd(taken.resolve, rest.promise);
    });
    await Promise.all(sent);
    const me = await fetch(`${url}/v1/me`, { headers: bearer(secret) });
    expect(me.status).toBe(200);
    rest.resolve();
    const answers = await Promise.all(calls);
    expect(new Set(answers)).toEqual(new Set([400, 503]));
    expect(peakMiB()).toBeLessThan((CALLS * BODY_BYTES) / MEBIBYTE / 2);
  },
);

/**
 * Sends all but the last byte, then the last one when `rest` resolves. Calls `onSent` when the others are
 * sent or a response arrives. Resolves to the status.
 */
function sendAllButTheEnd(onSent: () => void, rest: Promise<void>): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = httpRequest(`${url}/v1/generate`, {
      method: "POST",
      agent: false,
      headers: { ...bearer(secret), "content-type": "application/json", "content-length": BODY_BYTES },
    });
    call.on("error", reject);
    call.on("response", (response) => {
      onSent();
      response.resume().once("end", () => {
        call.destroy();
        resolve(response.statusCode ?? 0);
      });
    });
    call.write(SPACES.subarray(1), () => {
      onSent();
      void rest.then(() => call.end(" "));
    });
  });
}

const SPACES = Buffer.alloc(BODY_BYTES, 0x20);
