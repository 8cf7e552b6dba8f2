import { type ClientHttp2Session, connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ServerReflectionRequestSchema } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { bindReflection } from "../../src/server/connect/reflection.ts";
import { testFile } from "../rest/descriptors.ts";
import { type Mounted, mount } from "../rest/mount.ts";

const PATH = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const QUESTION = toBinary(
  ServerReflectionRequestSchema,
  create(ServerReflectionRequestSchema, { messageRequest: { case: "listServices", value: "*" } }),
);
const FRAME = Buffer.concat([Buffer.from([0, 0, 0, 0, QUESTION.length]), QUESTION]);

let server: Mounted;
let session: ClientHttp2Session;

beforeEach(async () => {
  server = await mount(testFile({ Nothing: ["bool nothing"] }, {}), {
    methods: {},
    openRoutes: (router) => bindReflection(router, [MeService]),
  });
  // No response can be sent: the flow-control window is zero.
  session = connect(server.url, { settings: { initialWindowSize: 0 } });
});
afterEach(async () => {
  session.destroy();
  await server.stop();
});

function ask(bytes: number) {
  const stream = session.request({ ":method": "POST", ":path": PATH, "content-type": "application/grpc", te: "trailers" });
  stream.on("error", () => undefined);
  stream.write(Buffer.concat(Array(Math.floor(bytes / FRAME.length)).fill(FRAME)));
  return stream;
}

test("a caller that sends too many requests without reading responses is disconnected", async () => {
  const stream = ask(1_000_000);
  await new Promise((resolve) => stream.once("close", resolve));
  expect(stream.rstCode).toBe(11);
});

test("a caller that sends many requests and reads later gets every response", async () => {
  const stream = ask(60_000);
  let bytes = 0;
  const answered = new Promise<void>((resolve) => {
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    stream.once("end", resolve);
  });
  await new Promise((resolve) => stream.once("response", resolve));
  stream.end();
  session.settings({ initialWindowSize: 1_048_576 });
  await answered;
  expect(bytes).toBeGreaterThan(60_000);
});
