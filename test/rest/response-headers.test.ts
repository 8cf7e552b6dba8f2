import type { Message } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import type { ApiCall } from "../../src/api/define-service.ts";
import type { Call } from "../../src/server/call.ts";
import { envelope } from "../../src/server/wire/rpc.ts";
import { type RawRequest, sendHttp1, sendHttp2 } from "../support/raw.ts";
import { started } from "../support/started.ts";
import { talk } from "../support/tcp.ts";
import { testFile } from "./descriptors.ts";
import { mount } from "./mount.ts";

test("a header that is set twice has its last value, once", async () => {
  const http = { pattern: { case: "get", value: "/v1/get" } } as never;
  const file = testFile({ Ask: [], Answer: [] }, { Get: { input: "Ask", output: "Answer", http } });
  const Get = async (_request: never, call: ApiCall) => {
    const served = call as Call;
    served.setHeader("ratelimit", "first");
    served.setHeader("x-other", "ratelimit");
    served.setHeader("ratelimit", "second");
    return {};
  };
  const server = await mount(file, { methods: { get: Get } });
  const answer = await sendHttp1(server.url, { path: "/v1/get", method: "GET" });
  await server.stop();
  // Repeated headers would be joined.
  expect(answer.headers).toMatchObject({ ratelimit: "second", "x-other": "ratelimit" });
});

const ECHO = "/test.v1.TestService/Echo";
const REPEAT = "/test.v1.TestService/Repeat";
const CHECK = "/grpc.health.v1.Health/Check";
const JSON_TYPE = { "content-type": "application/json" };
const STREAM_TYPE = { "content-type": "application/connect+json" };
const GRPC_TYPE = { "content-type": "application/grpc", te: "trailers" };
const EMPTY = envelope(0, Buffer.alloc(0));

const file = testFile(
  { Text: ["string text"] },
  { Echo: { input: "Text", output: "Text" }, Repeat: { input: "Text", output: "Text", streams: true } },
);
const echoing = started(() =>
  mount(file, {
    methods: {
      echo: (message: Message) => message,
      repeat: async function* (message: Message) {
        yield message;
      },
    },
    openRoutes: (router) => router.rpc(Health.method.check, () => ({ status: 1 })),
  }),
);

test.each<[string, RawRequest]>([
  ["a unary call over Connect", { path: ECHO, headers: JSON_TYPE, body: "{}" }],
  ["an error over Connect", { path: ECHO, headers: JSON_TYPE, body: "{" }],
  ["an unknown compression over Connect", { path: ECHO, headers: { ...JSON_TYPE, "content-encoding": "x" }, body: "{}" }],
  ["a stream over Connect", { path: REPEAT, headers: STREAM_TYPE, body: envelope(0, Buffer.from("{}")) }],
  ["a method that Connect does not have", { method: "PUT", path: ECHO, headers: JSON_TYPE }],
  ["an unknown RPC over Connect", { path: "/test.v1.TestService/Unknown", headers: JSON_TYPE, body: "{}" }],
  ["a call over gRPC-Web", { path: ECHO, headers: { "content-type": "application/grpc-web+proto" }, body: EMPTY }],
  ["a call over gRPC", { path: ECHO, headers: GRPC_TYPE, body: EMPTY }],
  ["an unknown RPC over gRPC", { path: "/test.v1.TestService/Unknown", headers: GRPC_TYPE, body: EMPTY }],
  ["a health check over Connect", { path: CHECK, headers: JSON_TYPE, body: "{}" }],
  ["a health check over gRPC", { path: CHECK, headers: GRPC_TYPE, body: EMPTY }],
])("%s may not be stored by caches", async (_, request) => {
  const send = request.headers === GRPC_TYPE ? sendHttp2 : sendHttp1;
  expect((await send(echoing.url, request)).headers["cache-control"]).toBe("no-store");
});

test("a request that is not valid HTTP gets a response that may not be stored by caches", async () => {
  const { text } = await talk(echoing.url, "this is not HTTP\r\n\r\n");
  expect(text).toMatch(/^HTTP\/1\.1 400 .*\r\ncache-control: no-store\r\n/s);
});

test("a bug in a call without a key is logged with its request id", async () => {
  const server = await mount(testFile({ Ask: [] }, {}), {
    methods: {},
    openRoutes: (router) =>
      router.rpc(Health.method.check, () => {
        throw new Error("a bug");
      }),
  });
  const headers = { ...JSON_TYPE, "x-request-id": "req_bug" };
  const { status } = await sendHttp1(server.url, { path: CHECK, headers, body: "{}" });
  await server.stop();
  expect(status).toBe(500);
  expect(server.ended).toMatchObject([
    { rpc: "failed", failure: { request_id: "req_bug", rpc: CHECK.slice(1), err: { message: "a bug" } } },
  ]);
});
