import { connect } from "node:http2";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test, vi } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { startTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";

const path = "/vx.v1.MeService/GetMe";

test("a call that runs when the server is stopped is finished, new ones are not taken", async () => {
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
  // The gate has let it in, and it waits for the rest of its body.
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

test("idle connections do not hold a stop up", async () => {
  const app = await startTestApp();
  const session = connect(app.url);
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  await fetch(`${app.url}/livez`, { keepalive: true });
  const startedAt = performance.now();
  await app.stop();
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});

test("who watches the health is told that it ends", async () => {
  const app = await startTestApp();
  const health = createClient(Health, createGrpcTransport({ baseUrl: app.url }));
  const told: Status[] = [];
  const watched = (async () => {
    for await (const { status } of health.watch({})) {
      told.push(status);
      if (status === Status.NOT_SERVING) break;
    }
  })();
  await vi.waitFor(() => expect(told).toEqual([Status.SERVING]));
  const stopped = app.stop();
  await watched;
  expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]);
  await stopped;
});

test("who keeps watching does not hold the stop up", async () => {
  const app = await startTestApp();
  const health = createClient(Health, createGrpcTransport({ baseUrl: app.url }));
  const told: Status[] = [];
  const watched = (async () => {
    for await (const { status } of health.watch({})) told.push(status);
  })();
  await vi.waitFor(() => expect(told).toEqual([Status.SERVING]));
  const startedAt = performance.now();
  await app.stop();
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  await watched.catch(() => undefined);
  expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]);
});

async function running(adminUrl: string): Promise<number> {
  const answer = await fetch(`${adminUrl}/metrics`, { headers: bearer("operator-token-of-the-tests") });
  return Number(/^vx_running_calls (\d+)$/m.exec(await answer.text())?.[1]);
}
