import { randomBytes } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { Surface } from "../../gen/vx/options/v1/options_pb.js";
import { generateKey } from "../../src/domain/credentials.ts";
import type { Lane } from "../../src/domain/lane.ts";
import { sendHttp1 } from "../support/raw.ts";
import { started } from "../support/started.ts";
import { expectError, JSON_BODY, jsonOf } from "./answers.ts";
import { type MethodSpec, testFile } from "./descriptors.ts";
import { mount } from "./mount.ts";

const MESSAGES = {
  Inner: ["string name"],
  Ask: ["string model", "int32 max_tokens", "Inner inner", "google.protobuf.Struct extra_fields", "bool stream"],
  Reply: ["string model"],
};
const http = { pattern: { case: "post", value: "/v1/say" }, body: "*" } as const;
const METHODS: Record<string, MethodSpec> = {
  Say: { input: "Ask", output: "Reply", http },
  StreamSay: { input: "Ask", output: "Reply", streams: true, http, selectedBy: "stream" },
};
const options = { collectsUnknown: "extra_fields" };
const file = testFile(MESSAGES, METHODS, Surface.OPENAI, options);

let received: Record<string, unknown> | undefined;

const methods = {
  say: (ask: Record<string, unknown>) => {
    received = ask;
    return { model: "said" };
  },
  async *streamSay(ask: Record<string, unknown>) {
    yield methods.say(ask);
  },
};
const mounted = started(() => mount(file, { methods, unknownFields: "ignore" }));
afterEach(() => {
  received = undefined;
});

const EXTRA = { top_k: 5, chat_template_kwargs: { enable: [true, null, "x"] }, __proto__x: 1 };
const MANY = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`name_${i}`, i]));

const say = (body: unknown, path = "/v1/say") =>
  sendHttp1(mounted.url, { path, headers: JSON_BODY, body: typeof body === "string" ? body : JSON.stringify(body) });

test.each(["/v1/say", "/test.v1.TestService/Say"])("unknown names of a body at %s are collected", async (path) => {
  expect((await say({ model: "m", ...EXTRA }, path)).status).toBe(200);
  expect(received).toMatchObject({ model: "m", extraFields: EXTRA });
});

test("unknown names are also collected for the streaming method", async () => {
  expect((await say({ stream: true, ...EXTRA })).headers["content-type"]).toBe("text/event-stream");
  expect(received).toMatchObject({ stream: true, extraFields: EXTRA });
});

test("names that the message has are not collected, in either spelling", async () => {
  await say({ maxTokens: 5, inner: { name: "a", other: "ignored" } });
  expect(received).toMatchObject({ maxTokens: 5, inner: { name: "a" } });
  expect(received?.extraFields).toBeUndefined();
});

test("the collecting field can be set itself, and unknown names are added to it", async () => {
  await say({ top_k: 5, extra_fields: { min_p: 0.5 } });
  expect(received?.extraFields).toEqual({ top_k: 5, min_p: 0.5 });
  await say({ extra_fields: {} });
  expect(received?.extraFields).toEqual({});
  expectError(await say({ top_k: 5, extra_fields: { top_k: 5 } }), "invalid_argument", "top_k");
});

test("__proto__ is an ordinary name", async () => {
  await say('{"__proto__":{"polluted":true}}');
  expect(Object.entries(received?.extraFields as object)).toEqual([["__proto__", { polluted: true }]]);
});

test("an API key is refused with the name under which it was sent", async () => {
  const { secret: key } = generateKey(0 as Lane, randomBytes);
  expectError(await say({ top_k: 5, metadata: { note: [key] } }), "invalid_argument", "metadata");
  expectError(await say({ [key]: 5 }), "invalid_argument", "extra_fields");
});

test("64 names are accepted, 65 are refused", async () => {
  expect((await say(MANY)).status).toBe(200);
  expectError(await say({ ...MANY, more: 1 }), "invalid_argument", "extra_fields");
});

test.each<[string, unknown, unknown]>([
  ["a text", "x".repeat(65_534), "x".repeat(65_535)],
  ["a text with escapes", "\n".repeat(32_767), "\n".repeat(32_768)],
  ["a list", Array(32_767).fill(1), Array(32_768).fill(1)],
  ["an object", { a: "x".repeat(65_528) }, { a: "x".repeat(65_529) }],
])("%s of 64 KiB is accepted, a longer one is refused", async (_name, fits, exceeds) => {
  expect((await say({ top_k: fits })).status).toBe(200);
  expect(jsonOf(await say({ top_k: exceeds }))).toMatchObject({
    error: { code: "invalid_argument", param: "top_k", message: expect.stringContaining("65536 bytes") },
  });
});

describe.each([
  ["gRPC", () => createGrpcTransport({ baseUrl: mounted.url })],
  ["Connect", () => createConnectTransport({ baseUrl: mounted.url, httpVersion: "1.1" })],
])("over %s", (_name, transport) => {
  const say = (extraFields: object) =>
    (createClient(file.service, transport()) as unknown as { say(ask: object): Promise<unknown> }).say({ extraFields });

  test("the field is set by the caller, with the same limits", async () => {
    await say(EXTRA);
    expect(received?.extraFields).toEqual(EXTRA);
    await expect(say({ ...MANY, more: 1 })).rejects.toThrow(/more than 64 fields/);
    await expect(say({ top_k: "x".repeat(65_535) })).rejects.toThrow(/top_k.*65536 bytes/);
  });
});
