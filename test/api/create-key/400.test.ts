import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { useTestApp } from "../../support/app.ts";
import { useOperator, useTestKey } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const calling = useTestKey(app, { plan: "pro" });

type Case = {
  readonly what: string;
  readonly field: string;
  readonly request: {
    readonly name?: string;
    readonly scopes?: string[];
    readonly rateLimitRpm?: number;
    readonly expiresAt?: { readonly seconds: bigint; readonly nanos: number };
  };
  /** The JSON mapping of protobuf cannot express the value, so no client sends it. */
  readonly binaryOnly?: boolean;
};

const cases: readonly Case[] = [
  { what: "no name", field: "name", request: { name: "" } },
  { what: "a name of 101 characters", field: "name", request: { name: "x".repeat(101) } },
  { what: "a name of 101 characters outside the BMP", field: "name", request: { name: "🔑".repeat(101) } },
  { what: "NUL in the name", field: "name", request: { name: "a\u0000b" } },
  { what: "a line break in the name", field: "name", request: { name: "a\nb" } },
  { what: "DEL in the name", field: "name", request: { name: "a\u007f" } },
  { what: "a C1 control character in the name", field: "name", request: { name: "\u009f" } },
  { what: "spaces as the name", field: "name", request: { name: " \u00a0" } },
  { what: "a zero-width space as the name", field: "name", request: { name: "\u200b" } },
  { what: "a right-to-left override as the name", field: "name", request: { name: "\u202e" } },
  { what: "a line break at the end of the name", field: "name", request: { name: "a\n" } },
  { what: "a scope twice", field: "scopes", request: { scopes: ["read", "read"] } },
  { what: "an unknown scope", field: "scopes[1]", request: { scopes: ["read", "admin"] } },
  { what: "an empty scope", field: "scopes[0]", request: { scopes: [""] } },
  { what: "a scope in capitals", field: "scopes[0]", request: { scopes: ["READ"] } },
  { what: "a limit of 0", field: "rate_limit_rpm", request: { rateLimitRpm: 0 } },
  { what: "a negative limit", field: "rate_limit_rpm", request: { rateLimitRpm: -1 } },
  { what: "a limit above the plan's", field: "rate_limit_rpm", request: { rateLimitRpm: 601 } },
  { what: "a limit above all plans", field: "rate_limit_rpm", request: { rateLimitRpm: 2_147_483_647 } },
  {
    what: "an expiry in the past",
    field: "expires_at",
    request: { expiresAt: timestampFromDate(new Date(Date.now() - 1_000)) },
  },
  { what: "an expiry in 1970", field: "expires_at", request: { expiresAt: { seconds: 0n, nanos: 0 } } },
  { what: "an expiry before 1970", field: "expires_at", request: { expiresAt: { seconds: -1n, nanos: 0 } } },
  {
    what: "an expiry after the year 9999",
    field: "expires_at",
    request: { expiresAt: { seconds: 253_402_300_800n, nanos: 0 } },
    binaryOnly: true,
  },
  {
    what: "an expiry no calendar has",
    field: "expires_at",
    request: { expiresAt: { seconds: 9_223_372_036_854_775_807n, nanos: 0 } },
    binaryOnly: true,
  },
];

describe.each(protocols)("$name", ({ name, open }) => {
  const applicable = cases.filter(({ binaryOnly }) => !(binaryOnly && name.includes("JSON")));

  test.each(applicable)("$what is a 400 that names $field", async ({ field, request }) => {
    const caller = open(app.url);
    const outcome = await caller.call(
      KeyService.method.createKey,
      { name: "ci", ...request },
      bearer(calling.secret),
    );
    caller.close();
    expect(outcome).toMatchObject({ code: "invalid_argument", reason: "invalid_argument", fields: [field] });
  });

  test("the message names the field once", async () => {
    const caller = open(app.url);
    const request = { name: "ci", expiresAt: timestampFromDate(new Date(Date.now() - 1_000)) };
    const outcome = await caller.call(KeyService.method.createKey, request, bearer(calling.secret));
    caller.close();
    expect(outcome).toMatchObject({ text: "expires_at: must be in the future" });
  });

  test("every invalid field is named", async () => {
    const caller = open(app.url);
    const request = { name: "", scopes: ["nothing"], rateLimitRpm: 0 };
    const outcome = await caller.call(KeyService.method.createKey, request, bearer(calling.secret));
    caller.close();
    expect(outcome.ok || outcome.fields).toEqual(["name", "scopes[0]", "rate_limit_rpm"]);
  });
});

test("a rejected request creates no key", async () => {
  const { apiKeys } = await operator.listKeys({ accountId: calling.accountId });
  expect(apiKeys.map(({ id }) => id)).toEqual([calling.id]);
});
