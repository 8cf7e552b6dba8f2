import { connect } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { callOf } from "../support/protocols.ts";
import { talk } from "../support/tcp.ts";

const app = useTestApp();
const key = useTestKey(app);
const call = callOf(app);

// Whatever a test sent: the next caller is served, and nothing was lost on the way.
afterEach(async () => {
  expect(await call(MeService.method.getMe, {}, key.secret)).toMatchObject({ ok: true });
  expect(app.logText().match(/uncaught|unhandled|request failed/)).toBeNull();
  expect(app.logText().includes(key.secret)).toBe(false);
  expect(app.logText().includes('"request_id":"hidden"')).toBe(false);
});

const path = "/vx.v1.MeService/GetMe";
const LINE = `POST ${path} HTTP/1.1`;
const end = "\r\n\r\n";

function request(line: string, headers: string[] = [], body = "{}"): string {
  const all = [
    "content-type: application/json",
    `authorization: Bearer ${key.secret}`,
    `content-length: ${body.length}`,
    ...headers,
  ];
  return `${line}\r\n${all.join("\r\n")}${end}${body}`;
}

describe("hosts and targets", () => {
  test("HTTP/1.0 without a Host header is served", async () => {
    const { text } = await talk(app.url, request(`POST ${path} HTTP/1.0`));
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(text).toContain('"keyName":"test"');
  });

  test("HTTP/1.1 without a Host header is a 400 in the envelope", async () => {
    const { text } = await talk(app.url, request(LINE));
    expect(text).toMatch(/^HTTP\/1\.1 400 [\s\S]*x-request-id: req_[\s\S]*"code":"invalid_argument"/i);
  });

  test.each(["a b", "<script>", "x/y", "a@b", '"', "\\"])("the Host header %j is a 400 in the envelope", async (host) => {
    const { text } = await talk(app.url, request(LINE, [`host: ${host}`, "connection: close"]));
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toContain('"code":"invalid_argument"');
  });

  test.each(["//", "///x", "/%", "/%zz", "/../../etc/passwd", "/vx.v1.MeService/", "/vx.v1.MeService/GetMe/", "*"])(
    "the target %j is a 404 in the envelope",
    async (target) => {
      const { text } = await talk(app.url, request(`POST ${target} HTTP/1.1`, ["host: vx", "connection: close"]));
      expect(text).toMatch(/^HTTP\/1\.1 404 /);
      expect(text).toContain('"code":"not_found"');
    },
  );

  test("an absolute target without a host is refused and nothing breaks", async () => {
    const { text } = await talk(app.url, request("POST http:// HTTP/1.1", ["host: vx", "connection: close"]));
    expect(text).toMatch(/^HTTP\/1\.1 40[04] /);
  });

  test("CONNECT and upgrades are refused", async () => {
    expect((await talk(app.url, `CONNECT vx:443 HTTP/1.1\r\nhost: vx${end}`)).text).not.toMatch(/^HTTP\/1\.1 2/);
    const upgrade = ["host: vx", "connection: upgrade", "upgrade: websocket"];
    expect((await talk(app.url, request(LINE, upgrade), /}$/)).text).not.toMatch(/^HTTP\/1\.1 101/);
  });
});

describe("bytes that are not a request", () => {
  test("garbage before the preface gets a 400 and the connection closes", async () => {
    for (const bytes of ["\u0000\u0001garbage PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", request("BREW /v1/me HTTP/1.1")]) {
      const { text, closedByServer } = await talk(app.url, bytes);
      expect(text).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"invalid_argument"/);
      expect(closedByServer).toBe(true);
    }
  });

  test("a preface with a late error gets a 400 and the connection closes", async () => {
    expect((await talk(app.url, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")).text).toMatch(/^HTTP\/1\.1 400 /);
  });

  test("a TLS hello on the clear-text port is closed", async () => {
    expect((await talk(app.url, Buffer.from("16030100a5010000a10303", "hex"))).closedByServer).toBe(true);
  });

  test("headers beyond 16 KiB get a 431 with an error body", async () => {
    const { text } = await talk(app.url, request(LINE, ["host: vx", `x-long: ${"a".repeat(20_000)}`]));
    expect(text).toMatch(/^HTTP\/1\.1 431 /);
    expect(text).toContain('"code":"invalid_argument"');
  });

  test("two different content lengths get a 400, so no request is smuggled", async () => {
    const smuggled = `POST ${path} HTTP/1.1\r\nhost: vx\r\ncontent-length: 2\r\ncontent-length: 5${end}{}abc`;
    expect((await talk(app.url, smuggled)).text).toMatch(/^HTTP\/1\.1 400 /);
    const both = `POST ${path} HTTP/1.1\r\nhost: vx\r\ncontent-length: 2\r\ntransfer-encoding: chunked${end}0${end}`;
    expect((await talk(app.url, both)).text).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe("requests that a proxy may parse differently", () => {
  const chunked = `${end}2\r\n{}\r\n0${end}`;
  const head = `POST ${path} HTTP/1.1\r\ncontent-type: application/json\r\nhost: vx`;
  const hidden = () => `GET /v1/me HTTP/1.1\r\nhost: vx\r\nauthorization: Bearer ${key.secret}\r\nx-request-id: hidden${end}`;

  test.each([
    ["two Host headers", `${head}\r\nHOST: other\r\ncontent-length: 2${end}{}`],
    ["the same Host header twice", `${head}\r\nhost: vx\r\ncontent-length: 2${end}{}`],
    ["two Host headers beside a target with a host", `GET http://vx/v1/me HTTP/1.1\r\nhost: vx\r\nhost: other${end}`],
    ["another coding before chunked", `${head}\r\ntransfer-encoding: gzip, chunked${chunked}`],
    ["the same in two headers", `${head}\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked${chunked}`],
    ["another coding after chunked", `${head}\r\ntransfer-encoding: chunked, gzip${chunked}`],
    ["chunked twice", `${head}\r\ntransfer-encoding: chunked, chunked${chunked}`],
    ["no coding at all", `${head}\r\ntransfer-encoding:${chunked}`],
    ["identity", `${head}\r\ntransfer-encoding: identity${chunked}`],
    ["a coding that ends in chunked", `${head}\r\ntransfer-encoding: xchunked${chunked}`],
    ["chunked with a parameter", `${head}\r\ntransfer-encoding: chunked;q=1${chunked}`],
    ["chunked in HTTP/1.0", `${head.replace("1.1", "1.0")}\r\ntransfer-encoding: chunked${chunked}`],
    ["a length and chunked", `${head}\r\ncontent-length: 2\r\ntransfer-encoding: chunked${chunked}`],
  ])("%s: 400 in the envelope, and nothing behind it on the connection is served", async (_what, bytes) => {
    const { text, closedByServer } = await talk(app.url, bytes + hidden());
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 400"]);
    expect(text).toMatch(/^connection: close\r$/im);
    expect(text).toContain('"code":"invalid_argument"');
    expect(closedByServer).toBe(true);
  });

  test("chunked is accepted in upper and lower case", async () => {
    const bytes = `${head}\r\nauthorization: Bearer ${key.secret}\r\nconnection: close\r\ntransfer-encoding: Chunked${chunked}`;
    expect((await talk(app.url, bytes)).text).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("bodies", () => {
  test("a body of 33 MiB is rejected before it is read, and the response arrives", async () => {
    const bytes = 33 * 1024 * 1024;
    const head = request(LINE, ["host: vx", "connection: close"], "").replace("content-length: 0", `content-length: ${bytes}`);
    const { text } = await talk(app.url, [head, Buffer.alloc(1_000)], /request_too_large|REQUEST_TOO_LARGE/);
    expect(text).toContain('"code":"resource_exhausted"');
  });

  test("an unknown compression is rejected with the supported ones", async () => {
    const { text } = await talk(app.url, request(LINE, ["host: vx", "content-encoding: lzma", "connection: close"]));
    expect(text).toMatch(/unknown compression/);
    expect(text).toMatch(/gzip,br/);
  });

  test("a disconnect during the body leaves no running call", async () => {
    const { hostname, port } = new URL(app.url);
    const socket = connect(Number(port), hostname);
    const head = request(LINE, ["host: vx"], "").replace("content-length: 0", "content-length: 100");
    await new Promise((resolve) => socket.write(head, resolve));
    socket.destroy();
    await vi.waitFor(() => expect(app.logText().includes('"code":"canceled"')).toBe(true));
  });
});

describe("credentials outside the Authorization header", () => {
  test("a key in a path returns a 404 that does not repeat it", async () => {
    const { text } = await talk(app.url, request(`POST /${key.secret} HTTP/1.1`, ["host: vx", "connection: close"]));
    expect(text).toMatch(/^HTTP\/1\.1 404 /);
    expect(text).not.toContain(key.secret);
  });

  test("a key is not accepted as request id", async () => {
    const { text } = await talk(app.url, request(LINE, ["host: vx", `x-request-id: ${key.secret}`, "connection: close"]));
    expect(text).toMatch(/x-request-id: req_/);
  });

  test("a cookie is not accepted as a key", async () => {
    const cookie = `POST ${path} HTTP/1.1\r\nhost: vx\r\nconnection: close\r\ncontent-type: application/json\r\ncookie: key=${key.secret}\r\ncontent-length: 2${end}{}`;
    const { text } = await talk(app.url, cookie);
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text).not.toMatch(/set-cookie/i);
  });
});
