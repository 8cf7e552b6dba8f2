import { fromBinary, fromJson, type JsonValue, type Message } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { envelope } from "../../src/server/wire/rpc.ts";
import { testFile } from "../rest/descriptors.ts";
import { mount } from "../rest/mount.ts";
import { type RawAnswer, sendHttp1, sendHttp2 } from "../support/raw.ts";
import { started } from "../support/started.ts";

const file = testFile(
  { Text: ["string text"] },
  { Echo: { input: "Text", output: "Text" }, Repeat: { input: "Text", output: "Text", streams: true } },
);
const ECHO = "/test.v1.TestService/Echo";
const REPEAT = "/test.v1.TestService/Repeat";
const UNKNOWN = "/test.v1.TestService/Unknown";

const server = started(() =>
  mount(file, {
    methods: {
      echo: (request: Message) => request,
      repeat: async function* (request: Message) {
        yield request;
      },
    },
  }),
);

/** What a client reads from an error: HTTP status, code, reason. */
type Refusal = { readonly status: number; readonly code: string; readonly reason: string };

function ofConnect({ status, headers, body }: RawAnswer): Refusal {
  expect(headers["content-type"]).toMatch(/^application\/json(; charset=utf-8)?$/);
  return { status, ...ofConnectError(JSON.parse(body.toString())) };
}

function ofConnectError(error: { code: string; details: { type: string; debug: JsonValue }[] }) {
  expect(error.details.map(({ type }) => type)).toEqual(["google.rpc.ErrorInfo"]);
  const info = fromJson(ErrorInfoSchema, error.details[0]?.debug ?? null);
  expect(info).toMatchObject({ domain: "vx" });
  return { code: error.code, reason: info.reason };
}

function ofConnectStream({ status, headers, body }: RawAnswer): Refusal {
  expect(headers["content-type"]).toBe("application/connect+json");
  expect(body[0]).toBe(2);
  expect(body.readUInt32BE(1)).toBe(body.length - 5);
  return { status, ...ofConnectError(JSON.parse(body.subarray(5).toString()).error) };
}

function ofGrpc({ status, headers, body }: RawAnswer): Refusal {
  expect(body.length).toBe(0);
  const details = Buffer.from(headers["grpc-status-details-bin"] ?? "", "base64");
  const [detail] = fromBinary(StatusSchema, details).details;
  expect(detail?.typeUrl).toBe("type.googleapis.com/google.rpc.ErrorInfo");
  const info = fromBinary(ErrorInfoSchema, detail?.value ?? new Uint8Array());
  expect(info).toMatchObject({ domain: "vx" });
  return { status, code: headers["grpc-status"] ?? "", reason: info.reason };
}

const message = envelope(0, Buffer.from("{}"));
const callers = [
  { name: "Connect", type: "application/json", body: "{}", send: sendHttp1, read: ofConnect, path: ECHO },
  // biome-ignore format: a caller a line
  { name: "a Connect stream", type: "application/connect+json", body: message, send: sendHttp2, read: ofConnectStream, path: REPEAT },
  { name: "gRPC-Web", type: "application/grpc-web+json", body: message, send: sendHttp1, read: ofGrpc, path: ECHO },
  { name: "gRPC", type: "application/grpc+json", body: message, send: sendHttp2, read: ofGrpc, path: ECHO },
] as const;

describe.each(callers)("$name", ({ type, body, send, read, path }) => {
  const isPlain = type === "application/json";
  /** Codes are names in Connect and numbers in gRPC. */
  const refusal = (status: number, code: RegExp, reason: string) => ({
    status: isPlain ? status : 200,
    code: expect.stringMatching(code),
    reason,
  });

  test("a method that does not exist is unimplemented", async () => {
    const answer = await send(server.url, { path: UNKNOWN, headers: { "content-type": type }, body });
    expect(read(answer)).toEqual(refusal(404, /^(unimplemented|12)$/, "NOT_FOUND"));
  });

  test("a verb other than POST is rejected with the allowed verbs", async () => {
    const answer = await send(server.url, { method: "DELETE", path, headers: { "content-type": type } });
    expect(read(answer)).toEqual(refusal(405, /^(unknown|2)$/, "METHOD_NOT_ALLOWED"));
    expect(answer.headers.allow).toBe("POST");
  });
});

describe("an unknown content type", () => {
  test.each([
    ["of Connect", "application/foo"],
    ["of a Connect stream", "application/connect+foo"],
    ["of no protocol", "image/jpeg"],
    ["of a stream, for a unary method,", "application/connect+json"],
  ])("%s is a 415 in Connect's format", async (_name, type) => {
    const answer = await sendHttp1(server.url, { path: ECHO, headers: { "content-type": type }, body: "{}" });
    if (type === "application/connect+json") {
      expect(ofConnectStream(answer)).toMatchObject({ code: "unknown", reason: "UNSUPPORTED_MEDIA_TYPE" });
      return;
    }
    expect(ofConnect(answer)).toEqual({ status: 415, code: "unknown", reason: "UNSUPPORTED_MEDIA_TYPE" });
  });

  test("of a unary call, for a stream, is a 415 in Connect's format", async () => {
    const headers = { "content-type": "application/json" };
    const answer = await sendHttp1(server.url, { path: REPEAT, headers, body: "{}" });
    expect(ofConnect(answer)).toEqual({ status: 415, code: "unknown", reason: "UNSUPPORTED_MEDIA_TYPE" });
    expect(answer.body.toString()).toMatch(/"message":"Send application\/connect\+json or application\/connect\+proto, /);
  });

  test.each([
    ["gRPC", "application/grpc+foo", "application/grpc", sendHttp2],
    ["gRPC-Web", "application/grpc-web+foo", "application/grpc-web+proto", sendHttp1],
  ] as const)("of %s is a status in the headers", async (_name, type, answered, send) => {
    const answer = await send(server.url, { path: ECHO, headers: { "content-type": type }, body: message });
    expect(ofGrpc(answer)).toEqual({ status: 200, code: "2", reason: "UNSUPPORTED_MEDIA_TYPE" });
    expect(answer.headers["content-type"]).toBe(answered);
  });
});

describe("a message flagged as compressed", () => {
  const flagged = envelope(1, Buffer.from('{"text":"plain"}'));

  test.each([
    ["without an encoding", {}],
    ["with the encoding identity", { "grpc-encoding": "identity" }],
  ])("%s is an internal error over gRPC and gRPC-Web", async (_name, encoding) => {
    const grpc = { "content-type": "application/grpc+json", te: "trailers", ...encoding };
    const overGrpc = await sendHttp2(server.url, { path: ECHO, headers: grpc, body: flagged });
    expect(ofGrpc(overGrpc)).toMatchObject({ code: "13", reason: "UNEXPECTED_COMPRESSION" });
    const web = { "content-type": "application/grpc-web+json", ...encoding };
    const overWeb = await sendHttp1(server.url, { path: ECHO, headers: web, body: flagged });
    expect(overWeb.body.toString("latin1")).toContain("grpc-status: 13\r\n");
  });

  test.each([
    ["without an encoding", {}],
    ["with the encoding identity", { "connect-content-encoding": "identity" }],
  ])("%s is an internal error of a Connect stream", async (_name, encoding) => {
    const headers = { "content-type": "application/connect+json", ...encoding };
    const answer = await sendHttp1(server.url, { path: REPEAT, headers, body: flagged });
    expect(ofConnectStream(answer)).toEqual({ status: 200, code: "internal", reason: "UNEXPECTED_COMPRESSION" });
  });
});

test("a path that is not an RPC gets a REST error", async () => {
  for (const path of ["/nothing", "/nothing/here", "/a.b/"]) {
    const answer = await sendHttp1(server.url, { path, headers: { "content-type": "application/json" }, body: "{}" });
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body.toString()).error.code).toBe("not_found");
  }
});
