import { randomUUID } from "node:crypto";
import { connect, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { describe, expect, test } from "vitest";
import { expectNoFailures, useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { talk } from "../support/tcp.ts";
import { https } from "./answers.ts";

const app = useTestApp();
const key = useTestKey(app);
expectNoFailures(app);

function head(line: string, headers: string[], secret = key.secret): string {
  const all = ["host: vx", `authorization: Bearer ${secret}`, "content-type: application/json", ...headers];
  return `${line} HTTP/1.1\r\n${all.join("\r\n")}\r\n\r\n`;
}

describe("Expect: 100-continue over HTTP/1.1", () => {
  const expecting = (body: string) => ["expect: 100-continue", `content-length: ${body.length}`];

  test("an admitted call gets 100 Continue, then the response", async () => {
    for (const line of ["POST /v1/keys", "POST /vx.v1.KeyService/CreateKey"]) {
      const body = JSON.stringify({ name: randomUUID() });
      const { text } = await talk(app.url, [head(line, expecting(body)), body], /\}$/);
      expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[\s\S]*vx_live_/);
    }
  });

  test("a call without a valid key gets its response without 100 Continue, and the connection closes", async () => {
    for (const line of ["POST /v1/keys", "POST /v1/nothing", "POST /vx.v1.KeyService/CreateKey"]) {
      const { text, closedByServer } = await talk(app.url, head(line, expecting("{}"), `${key.secret}x`));
      expect(text).toMatch(/^HTTP\/1\.1 401 /);
      expect(text).toMatch(/\r\nconnection: close\r\n/i);
      expect(text).not.toContain("100 Continue");
      expect(closedByServer).toBe(true);
    }
  });

  test.each([
    ["a body that is too large", "POST /v1/keys", ["content-length: 99999999"], 413],
    ["a method without a body", "GET /v1/me", ["content-length: 2"], 400],
    ["an unknown path", "POST /v1/nothing", ["content-length: 2"], 404],
    ["a method without a route", "POST /v1/me", ["content-length: 2"], 405],
  ])("%s is rejected without 100 Continue", async (_name, line, headers, status) => {
    const { text, closedByServer } = await talk(app.url, head(line, ["expect: 100-continue", ...headers]));
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(closedByServer).toBe(true);
  });

  test("a connection stays open after 100 Continue and its body", async () => {
    const body = '{"name":"x"}';
    const call = head("POST /v1/keys", expecting(body)) + body;
    const last = head("GET /v1/me", ["connection: close"]);
    const { text } = await talk(app.url, call + call + last);
    expect(text.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9))).toEqual(["100", "200", "100", "200", "200"]);
  });

  test("other expectations are ignored", async () => {
    const { text } = await talk(app.url, head("GET /v1/me", ["expect: miracles", "connection: close"]));
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("Expect: 100-continue over HTTP/2", () => {
  test("an admitted call gets 100 Continue, then the response", async () => {
    expect(await expectOverHttp2(key.secret)).toEqual(["100", "200"]);
  });

  test("a call without a valid key gets its response without 100 Continue", async () => {
    expect(await expectOverHttp2(`${key.secret}x`)).toEqual(["401"]);
  });
});

describe("responses before the body is complete", () => {
  test.each([
    ["keep-alive", 401, () => `${key.secret}x`],
    ["close", 401, () => `${key.secret}x`],
    ["close", 413, () => key.secret],
  ])("with Connection: %s a client that is sending can read the %i", async (connection, status, secret) => {
    const bytes = status === 413 ? 64 * 1024 * 1024 : 8 * 1024 * 1024;
    const headers = [`connection: ${connection}`, `content-length: ${bytes}`];
    const { text, error } = await sendSlowly(app.url, head("POST /v1/generate", headers, secret()), bytes);
    expect(error).toBe(undefined);
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*"request_id"`));
  });

  test("over HTTP/2 a client that is still sending reads the complete 401 without a reset", async () => {
    const { status, text, code } = await sendSlowlyOverHttp2(`${key.secret}x`, 8 * 1024 * 1024);
    expect({ status, code }).toEqual({ status: 401, code: constants.NGHTTP2_NO_ERROR });
    expect(JSON.parse(text)).toMatchObject({ error: { code: "invalid_api_key" } });
  });

  test.each(https)("over $name a client that never sends its body reads the 401", async ({ send }) => {
    const headers = { "content-type": "application/json", "content-length": "1000", ...bearer("x") };
    expect((await send(app.url, { path: "/v1/generate", headers, withoutBody: true })).status).toBe(401);
  });
});

/** Reads the response while it sends the whole announced body in pieces. */
function sendSlowly(url: string, request: string, bytes: number): Promise<{ text: string; error?: string }> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp(Number(port), hostname);
  const piece = Buffer.alloc(64 * 1024, " ");
  let text = "";
  let left = bytes;
  return new Promise((resolve) => {
    const send = () => {
      while (left > 0 && socket.writable) {
        left -= piece.length;
        if (!socket.write(piece)) return;
      }
    };
    socket.on("drain", () => setImmediate(send));
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (/\r\n\r\n[\s\S]*\}$/.test(text)) {
        resolve({ text });
        socket.destroy();
      }
    });
    socket.on("error", (error) => resolve({ text, error: error.message }));
    socket.on("close", () => resolve({ text }));
    socket.write(request);
    send();
  });
}

/** Sends pieces until the stream ends. Returns the response and the code of the closed stream. */
async function sendSlowlyOverHttp2(secret: string, bytes: number) {
  const session = connect(app.url);
  const stream = session.request({ ":method": "POST", ":path": "/v1/generate", ...bearer(secret) });
  let status = 0;
  let text = "";
  stream.on("response", (headers) => {
    status = Number(headers[":status"]);
  });
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const piece = Buffer.alloc(64 * 1024, " ");
  let left = bytes;
  const send = () => {
    while (left > 0 && stream.writable) {
      left -= piece.length;
      if (!stream.write(piece)) return;
    }
    if (stream.writable) stream.end();
  };
  stream.on("drain", () => setImmediate(send));
  send();
  await new Promise<void>((resolve, reject) => {
    stream.on("error", reject);
    stream.once("close", () => resolve());
  }).finally(() => session.destroy());
  return { status, text, code: stream.rstCode };
}

function expectOverHttp2(secret: string): Promise<string[]> {
  const session = connect(app.url);
  const seen: string[] = [];
  return new Promise<string[]>((resolve, reject) => {
    session.on("error", reject);
    const stream = session.request({
      ":method": "POST",
      ":path": "/v1/keys",
      expect: "100-continue",
      "content-type": "application/json",
      ...bearer(secret),
    });
    stream.on("continue", () => {
      seen.push("100");
      stream.end('{"name":"x"}');
    });
    stream.on("response", (headers) => {
      seen.push(String(headers[":status"]));
      stream.resume();
      if (!stream.writableEnded) stream.end();
    });
    stream.on("end", () => resolve(seen));
    stream.on("error", reject);
  }).finally(() => session.destroy());
}
