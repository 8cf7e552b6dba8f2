import { randomBytes } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { generateKey } from "../../src/domain/credentials.ts";
import { pathOf, rpcMethods } from "../support/any-method.ts";
import { OPERATOR_TOKEN, useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { type RawRequest, reasonsIn, sendHttp1, sendHttp2 } from "../support/raw.ts";

const app = useTestApp();
const key = useTestKey(app);

/** A unary method, and a stream. That every method authenticates is tested in authentication.test.ts. */
const samples = [MeService.method.getMe, GenerateService.method.streamGenerate];

const connectType = ({ methodKind }: DescMethod) => (methodKind === "unary" ? "application/json" : "application/connect+json");

describe.each([
  ["Connect over HTTP/1.1", sendHttp1, connectType],
  ["Connect over HTTP/2", sendHttp2, connectType],
  ["gRPC", sendHttp2, () => "application/grpc+proto"],
  ["gRPC-Web over HTTP/1.1", sendHttp1, () => "application/grpc-web+proto"],
])("%s", (_, send, type) => {
  const eachMethod = async (reason: string, raw: (method: DescMethod) => Partial<RawRequest>) => {
    for (const method of samples) {
      const { headers, ...rest } = raw(method);
      const sent = { "content-type": type(method), ...headers };
      const answer = await send(app.url, { path: pathOf(method), headers: sent, body: "", ...rest });
      expect(reasonsIn(answer), method.name).toContain(reason);
      expect(answer.headers, method.name).toMatchObject({ "www-authenticate": "Bearer" });
      expect(answer.body.includes(key.secret.slice(12, -4))).toBe(false);
    }
  };

  test("two credentials are rejected, in one header or in two, even if both are valid", async () => {
    const valid = `Bearer ${key.secret}`;
    for (const authorization of [[valid, valid], `${valid}, ${valid}`])
      await eachMethod("invalid_api_key", () => ({ headers: { authorization } }));
  });

  test("a key in the URL is rejected, with and without the header", async () => {
    await eachMethod("invalid_api_key", (method) => ({ path: `${pathOf(method)}?api_key=${key.secret}` }));
    await eachMethod("invalid_api_key", (method) => ({
      path: `${pathOf(method)}?key=${key.secret}`,
      headers: { authorization: `Bearer ${key.secret}` },
    }));
  });

  test("a key that is only in the body does not authenticate", async () => {
    await eachMethod("missing_api_key", () => ({ body: JSON.stringify({ authorization: key.secret }) }));
  });

  test("401 is sent before the body is read", async () => {
    await eachMethod("missing_api_key", () => ({ withoutBody: true, headers: { "content-length": "1000000" } }));
  });
});

const readOnly = rpcMethods.filter(({ idempotency }) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS);

test("a Connect GET with a key in the URL is rejected", async () => {
  for (const method of readOnly) {
    const answer = await sendHttp1(app.url, {
      method: "GET",
      path: `${pathOf(method)}?connect=v1&encoding=json&message=%7B%7D&api_key=${key.secret}`,
    });
    expect(answer).toMatchObject({ status: 401, headers: { "www-authenticate": "Bearer" } });
    expect(reasonsIn(answer)).toContain("invalid_api_key");
    expect(app.logText()).not.toContain(key.secret);
  }
});

test.each(samples)("a preflight for $name gets no CORS header", async (method) => {
  const headers = {
    origin: "https://example.com",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
  };
  const preflight = await sendHttp1(app.url, { method: "OPTIONS", path: pathOf(method), headers });
  const answer = await sendHttp1(app.url, {
    path: pathOf(method),
    headers: { ...headers, "content-type": "application/json", authorization: `Bearer ${key.secret}` },
    body: "{}",
  });
  expect(preflight.status).toBe(405);
  for (const { headers } of [preflight, answer]) {
    expect(Object.keys(headers).join(" ")).not.toMatch(/access-control|set-cookie/);
  }
});

test("a key with a wrong checksum causes no database call", async () => {
  const call = (secret: string) =>
    sendHttp1(app.url, {
      path: "/vx.v1.MeService/GetMe",
      headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
      body: "{}",
    });
  const before = await admissionBatches();
  const { secret } = generateKey(0, randomBytes);
  const others = [..."abcdefghij"].filter((character) => !secret.endsWith(character));
  for (const character of others) await call(secret.slice(0, -1) + character);
  expect(await admissionBatches()).toBe(before);
  expect((await call(secret)).status).toBe(401);
  expect(await admissionBatches()).toBe(before + 1);
});

async function admissionBatches(): Promise<number> {
  const page = await fetch(`${app.adminUrl}/metrics`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
  const match = /^vx_batch_size_count\{batcher="admission"\} (\d+)$/m.exec(await page.text());
  return Number(match?.[1] ?? 0);
}
