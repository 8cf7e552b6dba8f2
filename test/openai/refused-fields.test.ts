import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { useTestApp } from "../support/app.ts";
import { useOperator, useTestKey } from "../support/fixtures.ts";
import { callOf } from "../support/protocols.ts";

const { createKey, getKey, listKeys, revokeKey } = KeyService.method;
const { getModel, listModels } = ModelService.method;
const { listEntries } = LedgerService.method;

const app = useTestApp();
const operator = useOperator(app);
const calling = useTestKey(app, { plan: "pro" });
const call = callOf(app);

type Row = readonly [method: string, what: string, field: string, send: () => ReturnType<typeof call>];

function rowsOf<I extends DescMessage>(
  method: DescMethodUnary<I, DescMessage>,
  ...rows: [what: string, field: string, request: MessageInitShape<I> | (() => MessageInitShape<I>)][]
): Row[] {
  return rows.map(([what, field, request]) => [
    method.name,
    what,
    field,
    () => call(method, typeof request === "function" ? request() : request, calling.secret),
  ]);
}

const token = (text: string) => Buffer.from(text).toString("base64url");

const ofKeyId = (method: typeof getKey) =>
  rowsOf(
    method,
    ["no id", "key_id", { keyId: "" }],
    ["the key itself", "key_id", () => ({ keyId: calling.secret })],
    ["an id of 65 characters", "key_id", { keyId: "k".repeat(65) }],
    ["NUL in the id", "key_id", { keyId: "key_\u0000" }],
    ["a line break in the id", "key_id", { keyId: "key_1\n" }],
    ["a C1 control character in the id", "key_id", { keyId: "key_\u0085" }],
  );

const named = (name: string) => ({ name });
const ci = (fields: Omit<MessageInitShape<typeof createKey.input>, "$typeName">) => ({ name: "ci", ...fields });
const expiring = (seconds: bigint) => ci({ expiresAt: { seconds, nanos: 0 } });

const rows: readonly Row[] = [
  ...ofKeyId(getKey),
  ...rowsOf(revokeKey, ["no id", "key_id", { keyId: "" }]),
  ...rowsOf(
    listKeys,
    ["a negative page_size", "page_size", { pageSize: -1 }],
    ["the smallest page_size", "page_size", { pageSize: -2_147_483_648 }],
    ["a made-up token", "page_token", { pageToken: "next" }],
    ["a token that is not base64url", "page_token", { pageToken: "MTprZXk=" }],
    ["a token of another list", "page_token", { pageToken: token("models:a") }],
    ["a token with SQL in it", "page_token", { pageToken: token("keys:' OR 1=1") }],
    ["a token with NUL in it", "page_token", { pageToken: token("keys:key_\u0000") }],
    ["an empty position", "page_token", { pageToken: token("keys:") }],
    ["a token of 513 characters", "page_token", { pageToken: "M".repeat(513) }],
  ),

  ...rowsOf(
    listEntries,
    ["a negative page_size", "page_size", { pageSize: -1 }],
    ["a token of another list", "page_token", { pageToken: token("keys:a") }],
    ["a position of 19 digits", "page_token", { pageToken: token(`entries:${"9".repeat(19)}`) }],
    ["a position of 100 digits", "page_token", { pageToken: token(`entries:${"9".repeat(100)}`) }],
    ["a position that is no number", "page_token", { pageToken: token("entries:key_01") }],
  ),
  ...rowsOf(
    getModel,
    ["no id", "model", { model: "" }],
    ["an id of 201 characters", "model", { model: "m".repeat(201) }],
    ["a control character", "model", { model: "a\u0007" }],
  ),
  ...rowsOf(
    listModels,
    ["a negative size", "page_size", { pageSize: -1 }],
    ["an invalid token", "page_token", { pageToken: "x" }],
    ["a token of another list", "page_token", { pageToken: token("keys:a") }],
    ["an invalid position in a token", "page_token", { pageToken: token("models:a b") }],
    ["a negative limit", "limit", { limit: -1 }],
    ["a limit beside another size", "limit", { limit: 1, pageSize: 2 }],
    ["an id on both sides", "before_id", { afterId: "a", beforeId: "b" }],
    ["a token beside an id", "page_token", { pageToken: token("models:a"), afterId: "a" }],
  ),
  ...rowsOf(
    createKey,
    ["no name", "name", named("")],
    ["a name of 101 characters", "name", named("x".repeat(101))],
    ["a name of 101 characters outside the BMP", "name", named("🔑".repeat(101))],
    ["NUL in the name", "name", named("a\u0000b")],
    ["a line break in the name", "name", named("a\nb")],
    ["DEL in the name", "name", named("a\u007f")],
    ["a C1 control character in the name", "name", named("\u009f")],
    ["spaces as the name", "name", named(" \u00a0")],
    ["a zero-width space as the name", "name", named("\u200b")],
    ["a right-to-left override as the name", "name", named("\u202e")],
    ["a line break at the end of the name", "name", named("a\n")],
    ["a scope twice", "scopes", ci({ scopes: ["read", "read"] })],
    ["an unknown scope", "scopes[1]", ci({ scopes: ["read", "admin"] })],
    ["an empty scope", "scopes[0]", ci({ scopes: [""] })],
    ["a scope in capitals", "scopes[0]", ci({ scopes: ["READ"] })],
    ["a limit of 0", "rate_limit_rpm", ci({ rateLimitRpm: 0 })],
    ["a negative limit", "rate_limit_rpm", ci({ rateLimitRpm: -1 })],
    ["a limit above the plan's", "rate_limit_rpm", ci({ rateLimitRpm: 601 })],
    ["a limit above all plans", "rate_limit_rpm", ci({ rateLimitRpm: 2_147_483_647 })],
    ["an expiry a second ago", "expires_at", () => expiring(BigInt(Math.floor(Date.now() / 1_000) - 1))],
    ["an expiry in 1970", "expires_at", expiring(0n)],
    ["an expiry before 1970", "expires_at", expiring(-1n)],
    ["an expiry after the year 9999", "expires_at", expiring(253_402_300_800n)],
    ["an expiry no calendar has", "expires_at", expiring(9_223_372_036_854_775_807n)],
  ),
];

test.each(rows)("%s with %s is a 400 that names %s", async (_method, _what, field, send) => {
  expect(await send()).toMatchObject({ code: "invalid_argument", reason: "invalid_argument", fields: [field] });
});

test("the message names the field once", async () => {
  expect(await call(createKey, expiring(1n), calling.secret)).toMatchObject({ text: "expires_at: must be in the future" });
});

test("every invalid field is named", async () => {
  const request = { name: "", scopes: ["nothing"], rateLimitRpm: 0 };
  expect(await call(createKey, request, calling.secret)).toMatchObject({ fields: ["name", "scopes[0]", "rate_limit_rpm"] });
});

test("a rejected request creates no key", async () => {
  const { apiKeys } = await operator.listKeys({ accountId: calling.accountId });
  expect(apiKeys.map(({ id }) => id)).toEqual([calling.id]);
});
