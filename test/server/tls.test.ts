import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { createCertificate } from "../support/certificate.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { talk } from "../support/tcp.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const { cert, key } = createCertificate();
const folder = createTemporaryFolder("tls");
const path = "/vx.v1.MeService/GetMe";
let app: TestApp;
let secret: string;

beforeAll(async () => {
  writeFileSync(join(folder.path, "cert.pem"), cert);
  writeFileSync(join(folder.path, "key.pem"), key);
  app = await startTestApp({
    env: { VX_TLS_CERT: join(folder.path, "cert.pem"), VX_TLS_KEY: join(folder.path, "key.pem") },
  });
  ({ secret } = await createTestKey(operatorOf(app)));
});
afterAll(async () => {
  await app.stop();
  folder.remove();
});

function port(): number {
  return Number(new URL(app.url).port);
}

test.each([
  [["h2", "http/1.1"], "h2"],
  [["http/1.1"], "http/1.1"],
])("a caller that offers %j gets %s", async (offered, chosen) => {
  const socket = connectTls({
    port: port(),
    host: "127.0.0.1",
    ca: cert,
    servername: "localhost",
    ALPNProtocols: offered,
  });
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  expect(socket.alpnProtocol).toBe(chosen);
  socket.destroy();
});

test("a connection is counted once, and no longer when it is over", async () => {
  const count = async () => {
    const answer = await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
    return Number(/^vx_connections (\d+)$/m.exec(await answer.text())?.[1]);
  };
  while ((await count()) > 0) await new Promise((resolve) => setImmediate(resolve));
  const socket = connectTls({ port: port(), host: "127.0.0.1", ca: cert, servername: "localhost" });
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  expect(await count()).toBe(1);
  socket.destroy();
  while ((await count()) > 0) await new Promise((resolve) => setImmediate(resolve));
});

test("HTTP/1.1 over TLS is served", async () => {
  const status = await new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", ...bearer(secret) };
    const call = httpsRequest(
      {
        port: port(),
        host: "127.0.0.1",
        path,
        method: "POST",
        ca: cert,
        servername: "localhost",
        headers,
        agent: false,
      },
      (response) => response.resume().on("end", () => resolve(response.statusCode)),
    );
    call.on("error", reject).end("{}");
  });
  expect(status).toBe(200);
});

test("HTTP/2 over TLS is served", async () => {
  const session = connectHttp2(`https://localhost:${port()}`, {
    ca: cert,
    servername: "localhost",
    lookup: undefined,
  } as object);
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/json",
    ...bearer(secret),
  });
  stream.end("{}");
  const headers = await new Promise<Record<string, unknown>>((resolve, reject) => {
    stream.on("response", resolve).on("error", reject);
    session.on("error", reject);
  });
  expect(headers[":status"]).toBe(200);
  session.destroy();
});

test("gRPC over TLS is served", async () => {
  const client = new grpc.Client(`localhost:${port()}`, grpc.credentials.createSsl(Buffer.from(cert)));
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${secret}`);
  const answer = await new Promise<Buffer | undefined>((resolve, reject) => {
    const same = (bytes: Buffer) => bytes;
    client.makeUnaryRequest(path, same, same, Buffer.alloc(0), metadata, (error, value) =>
      error ? reject(error) : resolve(value),
    );
  });
  expect(answer?.toString("latin1")).toContain("vx_live_");
  client.close();
});

test("clear text on the TLS port is closed", async () => {
  expect((await talk(app.url, "GET / HTTP/1.1\r\nhost: vx\r\n\r\n")).closedByServer).toBe(true);
});
