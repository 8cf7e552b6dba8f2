import { fromBinary, type JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { OPERATOR_TOKEN, useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1, sendHttp2 } from "../support/raw.ts";

const path = "/vx.v1.KeyService/GetKey";
const noProtobuf = Buffer.from([0xff, 0xff]);
const framed = Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), noProtobuf]);

const app = useTestApp();
const key = useTestKey(app);

function send(contentType: string, body: Buffer, headers: Record<string, string> = {}) {
  return { path, headers: { "content-type": contentType, ...bearer(key.secret), ...headers }, body };
}

describe("a message that cannot be parsed is the caller's mistake, with reason and details", () => {
  test("over gRPC", async () => {
    const { headers } = await sendHttp2(app.url, send("application/grpc+proto", framed, { te: "trailers" }));
    expect(headers["grpc-status"]).toBe("3");
    const status = fromBinary(StatusSchema, Buffer.from(headers["grpc-status-details-bin"] ?? "", "base64"));
    expect(status.details.map(({ typeUrl }) => typeUrl)).toContain("type.googleapis.com/google.rpc.ErrorInfo");
  });

  test("over gRPC-Web", async () => {
    const { body } = await sendHttp1(app.url, send("application/grpc-web+proto", framed));
    expect(body[0]).toBe(0x80);
    expect(body.readUInt32BE(1)).toBe(body.length - 5);
    expect(body.toString("latin1")).toMatch(/grpc-status: 3\r\n/);
    expect(body.toString("latin1")).toContain("grpc-status-details-bin");
  });

  test.each([
    ["binary", "application/proto", noProtobuf],
    ["JSON", "application/json", Buffer.from('{"key_id":1}')],
  ])("over Connect %s", async (_name, type, body) => {
    const answer = await sendHttp1(app.url, send(type, body));
    expect(answer.status).toBe(400);
    expect(Number(answer.headers["content-length"])).toBe(answer.body.length);
    const error = JSON.parse(answer.body.toString()) as { code: string; details: { type: string }[] };
    expect(error.code).toBe("invalid_argument");
    expect(error.details.map((detail) => detail.type)).toContain("google.rpc.ErrorInfo");
  });

  test("and is not logged as a server failure", () => {
    expect(app.logText()).toContain('"code":"invalid_argument"');
    expect(app.logText().match(/"level":"error"/)).toBeNull();
  });
});

test("a message of a GET that is not base64 is named", async () => {
  const query = "?connect=v1&encoding=proto&base64=1&message=%21%21";
  const answer = await sendHttp1(app.url, { method: "GET", path: path + query, headers: bearer(key.secret) });
  expect(answer.status).toBe(400);
  expect(JSON.parse(answer.body.toString())).toMatchObject({
    code: "invalid_argument",
    message: 'The parameter "message" of the query is not valid base64.',
  });
});

test.each([
  ["with a result", 200, "/vx.v1.MeService/GetMe?connect=v1&encoding=json&message=%7B%7D"],
  ["with an error", 404, `${path}?connect=v1&encoding=json&message=%7B%22keyId%22%3A%22key_none%22%7D`],
])("a response to a GET over Connect %s may not be stored by caches", async (_, status, of) => {
  const answer = await sendHttp1(app.url, { method: "GET", path: of, headers: bearer(key.secret) });
  expect([answer.status, answer.headers["cache-control"]]).toEqual([status, "no-store"]);
});

test("a GET in an unknown encoding is a 415 in Connect's format", async () => {
  const query = "?connect=v1&encoding=yaml&message=%7B%7D";
  const answer = await sendHttp1(app.url, { method: "GET", path: path + query, headers: bearer(key.secret) });
  expect(answer.status).toBe(415);
  const error = JSON.parse(answer.body.toString()) as { code: string; details: { debug: JsonValue }[] };
  expect(error.code).toBe("unknown");
  expect(error.details[0]?.debug).toMatchObject({ reason: "UNSUPPORTED_MEDIA_TYPE" });
  expect(app.logText()).toContain('"reason":"unsupported_media_type"');
});

test("a stream without side effects is not run by a GET", async () => {
  const answer = await sendHttp1(app.adminUrl, {
    method: "GET",
    path: "/vx.admin.v1.AdminService/ExportUsage?connect=v1&encoding=json&message=%7B%7D",
    headers: bearer(OPERATOR_TOKEN),
  });
  expect([answer.status, answer.headers.allow]).toEqual([405, "POST"]);
  expect(answer.body.toString()).toContain("Use POST.");
});

test("gRPC-Web in base64 is refused with the content type to send instead", async () => {
  const { headers } = await sendHttp1(app.url, send("application/grpc-web-text", framed));
  expect(headers["grpc-status"]).toBe("2");
  expect(decodeURIComponent(headers["grpc-message"] ?? "")).toMatch(
    /application\/grpc-web for gRPC-Web; the base64 form application\/grpc-web-text is not supported/,
  );
});
