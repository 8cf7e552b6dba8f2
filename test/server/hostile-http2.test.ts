import { connect, constants } from "node:http2";
import { afterEach, describe, expect, test } from "vitest";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { bearer, callOf } from "../support/protocols.ts";
import { sendHttp2 } from "../support/raw.ts";
import { talk } from "../support/tcp.ts";

const app = useTestApp();
const key = useTestKey(app);
const call = callOf(app);

afterEach(async () => {
  expect(await call(MeService.method.getMe, {}, key.secret)).toMatchObject({ ok: true });
  expect(app.logText().match(/uncaught|unhandled|request failed/)).toBeNull();
});

const path = "/vx.v1.MeService/GetMe";
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

function grpc(body: Uint8Array, headers: Record<string, string> = {}) {
  return sendHttp2(app.url, {
    path,
    headers: { "content-type": "application/grpc+proto", te: "trailers", ...bearer(key.secret), ...headers },
    body,
  });
}

describe("gRPC frames", () => {
  test.each([
    ["half a frame header", Buffer.from([0, 0])],
    ["a frame that is shorter than it says", Buffer.from([0, 0, 0, 0, 9, 1])],
    ["a frame of 4 GiB", Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1])],
    ["a message that is no protobuf", Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff])],
    ["a compressed frame without a compression", Buffer.from([1, 0, 0, 0, 1, 0])],
    ["no frame at all", Buffer.alloc(0)],
    ["two messages", Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
  ])("%s ends with a status, not with OK", async (_name, body) => {
    const answer = await grpc(body);
    expect(answer.status).toBe(200);
    expect(Number(answer.headers["grpc-status"])).toBeGreaterThan(0);
  });

  test("an unknown compression is UNIMPLEMENTED with the supported ones", async () => {
    const answer = await grpc(Buffer.alloc(5), { "grpc-encoding": "lzma" });
    expect(answer.headers["grpc-status"]).toBe("12");
    expect(decodeURIComponent(answer.headers["grpc-message"] ?? "")).toContain("gzip,br");
  });

  test("an invalid timeout is rejected", async () => {
    expect((await grpc(Buffer.alloc(5), { "grpc-timeout": "forever" })).headers["grpc-status"]).toBe("3");
  });
});

describe("connections", () => {
  test("a preface followed by garbage ends only its connection", async () => {
    const { closedByServer } = await talk(app.url, [PREFACE, "this is no frame, and it is long enough to be read as one"]);
    expect(closedByServer).toBe(true);
  });

  test("a first frame that is not SETTINGS ends only its connection", async () => {
    const ping = Buffer.from("00000806000000000000000000000000", "hex");
    expect((await talk(app.url, [PREFACE, ping, Buffer.alloc(64)])).closedByServer).toBe(true);
  });

  test("a preface that arrives byte by byte is accepted", async () => {
    const settings = Buffer.from("000000040000000000", "hex");
    const answer = await talk(app.url, [...PREFACE, settings], /[\s\S]{9}/);
    expect(answer.bytes.length).toBeGreaterThanOrEqual(9);
    expect(answer.bytes[3]).toBe(4);
  });

  test("a reset during the body leaves no running call", async () => {
    const session = connect(app.url);
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc+proto",
      ...bearer(key.secret),
    });
    stream.on("error", () => undefined);
    stream.write(Buffer.from([0, 0, 0]));
    const closed = new Promise<void>((resolve) => stream.once("close", () => resolve()));
    stream.close(constants.NGHTTP2_CANCEL);
    await closed;
    session.close();
  });

  test("headers beyond 16 KiB are rejected", async () => {
    const headers = { "content-type": "application/grpc", "x-long": "a".repeat(60_000), ...bearer(key.secret) };
    expect((await sendHttp2(app.url, { path, headers })).status).toBe(431);
  });

  test("a body of 33 MiB is rejected before it is read, and the response arrives", async () => {
    const answer = await sendHttp2(app.url, {
      path,
      headers: {
        "content-type": "application/grpc+proto",
        te: "trailers",
        "content-length": String(33 * 1024 * 1024),
        ...bearer(key.secret),
      },
      withoutBody: true,
    });
    expect(answer.headers["grpc-status"]).toBe("8");
  });
});
