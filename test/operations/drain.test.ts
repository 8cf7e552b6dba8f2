import { once } from "node:events";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test, vi } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { startTestApp } from "../support/app.ts";
import { createTestDatabase } from "../support/database.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { isAlive, ready, start, useDataFolder, workersOf } from "./server-process.ts";

useDataFolder();

const path = "/vx.v1.MeService/GetMe";
/** A separate connection for each request. */
const CLOSE = { headers: { connection: "close" } };

const database = started(() => createTestDatabase());

/** The key of the demo account, which the first start creates. */
let demoSecret: string | undefined;

async function startDelayed(workers: number, seconds: string) {
  const server = start({
    DATABASE_URL: database.url,
    VX_SEED_DEMO: demoSecret === undefined ? "1" : "0",
    VX_WORKERS: String(workers),
    VX_SHUTDOWN_DELAY: seconds,
  });
  const url = await server.line(ready);
  demoSecret ??= await server.line(/(vx_live_\w+)/);
  const adminUrl = /"admin":"([^"]+)"/.exec(server.stderr())?.[1];
  return { server: { process: server, adminUrl }, url, secret: demoSecret };
}

test("a drain finishes the running call and rejects new ones", async () => {
  const app = await startTestApp();
  const { secret } = await createTestKey(operatorOf(app));
  const session = connect(app.url);
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/json",
    ...bearer(secret),
  });
  const answered = new Promise<number>((resolve, reject) => {
    stream.on("response", (headers) => resolve(Number(headers[":status"]))).on("error", reject);
  });
  let body = "";
  stream.on("data", (chunk: Buffer) => {
    body += chunk.toString();
  });
  // The call is admitted and waits for the rest of its body.
  stream.write("{");
  await vi.waitFor(async () => expect(await running(app.adminUrl)).toBe(1));

  const stopped = app.stop();
  await vi.waitFor(() => expect(fetch(`${app.url}/livez`)).rejects.toThrow());
  stream.end("}");
  expect(await answered).toBe(200);
  await new Promise((resolve) => stream.once("close", resolve));
  expect(JSON.parse(body)).toMatchObject({ keyName: "test" });
  await stopped;
});

/** A stop that waits for calls to end takes 30 s. */
const NO_WAIT = { timeout: 25_000 };

test("idle connections and an open health watch do not delay a stop; the watch gets NOT_SERVING", NO_WAIT, async () => {
  const app = await startTestApp();
  const session = connect(app.url);
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  await fetch(`${app.url}/livez`, { keepalive: true });
  const health = createClient(Health, createGrpcTransport({ baseUrl: app.url }));
  const told: Status[] = [];
  const watched = (async () => {
    for await (const { status } of health.watch({})) told.push(status);
  })();
  await vi.waitFor(() => expect(told).toEqual([Status.SERVING]));
  await app.stop();
  await watched.catch(() => undefined);
  expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]);
});

describe.each([1, 2])("with a shutdown delay and %i server process(es)", (workers) => {
  test("after SIGTERM the server is not ready but still accepts connections and calls", async () => {
    const { server, url, secret } = await startDelayed(workers, "3600");
    const health = createClient(Health, createGrpcTransport({ baseUrl: url }));
    const told: Status[] = [];
    const watched = (async () => {
      for await (const { status } of health.watch({})) told.push(status);
    })().catch(() => undefined);
    await vi.waitFor(() => expect(told).toEqual([Status.SERVING]));
    const { adminUrl } = server;
    server.process.child.kill("SIGTERM");
    await vi.waitFor(async () => expect((await fetch(`${url}/readyz`, CLOSE)).status).toBe(503));
    await vi.waitFor(async () => expect((await fetch(`${adminUrl}/readyz`, CLOSE)).status).toBe(503));
    // Each over a separate connection, so that every worker gets some.
    for (let i = 0; i < 4; i++) {
      expect((await fetch(`${url}/readyz`, CLOSE)).status).toBe(503);
      expect((await fetch(`${url}/livez`, CLOSE)).status).toBe(200);
      const { headers } = CLOSE;
      const me = await fetch(`${url}/v1/me`, { headers: { ...headers, ...bearer(secret) } });
      expect(me.status).toBe(200);
    }
    expect(await health.check({})).toMatchObject({ status: Status.NOT_SERVING });
    // The delay lasts an hour: a watch is not told only at its end.
    await vi.waitFor(() => expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]));
    // Without asking for it, so that no connection is reused when the drain closes it.
    expect((await fetch(`${url}/livez`)).headers.get("connection")).toBe("close");
    // A second signal, such as the one npm passes on, does not shorten it.
    server.process.child.kill("SIGTERM");
    await vi.waitFor(() => expect(server.process.stderr()).toContain("already stopping"));
    expect((await fetch(`${url}/livez`, CLOSE)).status).toBe(200);
    const pids = workersOf(server.process.child.pid as number);
    expect(await server.process.end("SIGKILL")).toBe("SIGKILL");
    await watched;
    // Workers exit when their parent process has exited.
    await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]));
  });
});

test("after the delay the server drains and exits with 0", async () => {
  const { server, url } = await startDelayed(1, "1");
  const told: Status[] = [];
  const health = createClient(Health, createGrpcTransport({ baseUrl: url }));
  const watched = (async () => {
    for await (const { status } of health.watch({})) told.push(status);
  })().catch(() => undefined);
  await vi.waitFor(() => expect(told).toEqual([Status.SERVING]));
  expect(await server.process.end("SIGTERM")).toBe(0);
  await watched;
  expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]);
});

test("calls that run when the drain begins get the last responses of their connections", async () => {
  const app = await startTestApp();
  const { secret } = await createTestKey(operatorOf(app));
  const begin = () => {
    const { hostname, port } = new URL(app.url);
    const socket = connectTcp(Number(port), hostname);
    const head = ["host: vx", "content-type: application/json", `authorization: Bearer ${secret}`];
    socket.write(`POST ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\ncontent-length: 2\r\n\r\n{`);
    const statuses: string[] = [];
    socket.on("data", (chunk: Buffer) => {
      statuses.push(...(chunk.toString().match(/(?<=HTTP\/1.1 )\d+|connection: close/gi) ?? []));
    });
    return { socket, statuses, closed: once(socket, "close") };
  };
  const [longer, shorter] = [begin(), begin()];
  await vi.waitFor(async () => expect(await running(app.adminUrl)).toBe(2));
  const stopped = app.stop();
  await vi.waitFor(() => expect(fetch(`${app.url}/livez`)).rejects.toThrow());
  for (const call of [shorter, longer]) {
    call.socket.write("}");
    await call.closed;
    expect(call.statuses).toEqual(["200", "connection: close"]);
  }
  await stopped;
});

async function running(adminUrl: string): Promise<number> {
  const answer = await fetch(`${adminUrl}/metrics`, { headers: bearer("operator-token-of-the-tests") });
  return Number(/^vx_running_calls (\d+)$/m.exec(await answer.text())?.[1]);
}
