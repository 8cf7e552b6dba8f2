import { once } from "node:events";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { expect, test, vi } from "vitest";
import { HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { launchTestApp, OPERATOR_TOKEN, startTestApp } from "../support/app.ts";
import { createTestDatabase } from "../support/database.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { CLOSE, watch } from "./server-process.ts";

const path = "/vx.v1.MeService/GetMe";
const database = started(() => createTestDatabase());

test("a drain finishes the running call and rejects new ones", async () => {
  const app = await startTestApp();
  const { secret } = await createTestKey(operatorOf(app));
  const session = connect(app.url);
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/json", ...bearer(secret) });
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
  const { told, ended } = await watch(app.url);
  await app.stop();
  await ended;
  expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]);
});

test("after the shutdown delay, the server drains", async () => {
  const app = await launchTestApp({ DATABASE_URL: database.url, VX_ADMIN_TOKEN: OPERATOR_TOKEN }).started;
  const { told, ended } = await watch(app.url);
  await Promise.all([app.stop(1_000, true), ended]);
  expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]);
  await expect(fetch(`${app.url}/livez`, CLOSE)).rejects.toThrow();
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
  const answer = await fetch(`${adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
  return Number(/^vx_running_calls (\d+)$/m.exec(await answer.text())?.[1]);
}
