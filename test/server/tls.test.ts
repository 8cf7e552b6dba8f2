import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect as connectTls, type TLSSocket } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { afterAll, expect, test } from "vitest";
import { OPERATOR_TOKEN, useOwnApp } from "../support/app.ts";
import { createCertificate } from "../support/certificate.ts";
import { useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { talk } from "../support/tcp.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const { cert, key } = createCertificate();
const folder = createTemporaryFolder("tls");
const [VX_TLS_CERT, VX_TLS_KEY] = [join(folder.path, "cert.pem"), join(folder.path, "key.pem")];
writeFileSync(VX_TLS_CERT, cert);
writeFileSync(VX_TLS_KEY, key);
const app = useOwnApp({ env: { VX_TLS_CERT, VX_TLS_KEY } });
const caller = useTestKey(app);
afterAll(() => folder.remove());

const RPC = "/vx.v1.MeService/GetMe";
const port = () => Number(new URL(app.url).port);
const json = () => ({ "content-type": "application/json", ...bearer(caller.secret) });

async function dial(ALPNProtocols?: string[]): Promise<TLSSocket> {
  const offer = ALPNProtocols && { ALPNProtocols };
  const socket = connectTls({ port: port(), host: "127.0.0.1", ca: cert, servername: "localhost", ...offer });
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  return socket;
}

function sendHttp1(method: string, path: string): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { method, ca: cert, servername: "localhost", headers: json(), agent: false };
    httpsRequest(app.url + path, options, (response) =>
      text(response).then((body) => resolve({ status: response.statusCode, body }), reject),
    )
      .on("error", reject)
      .end(method === "POST" ? "{}" : undefined);
  });
}

test.each([
  [["h2", "http/1.1"], "h2"],
  [["http/1.1"], "http/1.1"],
])("a caller that offers %j gets %s", async (offered, chosen) => {
  const socket = await dial(offered);
  expect(socket.alpnProtocol).toBe(chosen);
  socket.destroy();
});

test("a connection is counted once, and no longer when it is over", async () => {
  const count = async () => {
    const answer = await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
    return Number(/^vx_connections (\d+)$/m.exec(await answer.text())?.[1]);
  };
  while ((await count()) > 0);
  const socket = await dial();
  expect(await count()).toBe(1);
  socket.destroy();
  while ((await count()) > 0);
});

test("HTTP/1.1 over TLS is served", async () => {
  expect((await sendHttp1("POST", RPC)).status).toBe(200);
});

test("HTTP/2 over TLS is served", async () => {
  const session = connectHttp2(`https://localhost:${port()}`, { ca: cert, servername: "localhost" });
  const stream = session.request({ ":method": "POST", ":path": RPC, ...json() });
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
  metadata.set("authorization", `Bearer ${caller.secret}`);
  const answer = await new Promise<Buffer | undefined>((resolve, reject) => {
    const same = (bytes: Buffer) => bytes;
    client.makeUnaryRequest(RPC, same, same, Buffer.alloc(0), metadata, (error, value) =>
      error ? reject(error) : resolve(value),
    );
  });
  expect(answer?.toString("latin1")).toContain("vx_live_");
  client.close();
});

test("clear text on the TLS port is closed", async () => {
  expect((await talk(app.url, "GET / HTTP/1.1\r\nhost: vx\r\n\r\n")).closedByServer).toBe(true);
});

test("the address on the page is https", async () => {
  expect((await sendHttp1("GET", "/")).body).toContain(`VX_URL=${app.url}`);
});
