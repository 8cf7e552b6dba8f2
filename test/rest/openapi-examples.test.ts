import { type DescField, getOption } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ChatMessageSchema, CreateChatCompletionRequestSchema } from "../../gen/vx/openai/v1/chat_pb.js";
import { json_schema } from "../../gen/vx/options/v1/options_pb.js";
import { ERRORS, type Reason } from "../../src/domain/errors.ts";
import { isUntyped } from "../../src/policy/untyped-values.ts";
import { developerServices } from "../../src/public-server.ts";
import { EXAMPLES, errorExample, type OperationExample } from "../../src/rest/openapi/examples.ts";
import { operationsOf } from "../../src/rest/openapi/operations.ts";
import type { Schema } from "../../src/rest/openapi/rules.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import type { Detail } from "./answers.ts";

let app: TestApp;
let key: TestKey;
/** Stands for the key that the examples name. */
let otherKeyId: string;

beforeAll(async () => {
  app = await startTestApp();
  const operator = operatorOf(app);
  key = await createTestKey(operator);
  const { accountId } = key;
  otherKeyId = (await createTestKey(operator, { accountId })).id;
  await operator.creditAccount({
    accountId,
    amountMicros: 10_000_000n,
    reason: "invoice 1001",
    idempotencyKey: "1001",
  });
});
afterAll(() => app.stop());

const operations = operationsOf(developerServices);

test("every operation has an example, and every example an operation", () => {
  expect(Object.keys(EXAMPLES).sort()).toEqual(operations.map(({ id }) => id).sort());
});

describe.each(operations)("$id", ({ id, binding }) => {
  const example = EXAMPLES[id] as OperationExample;

  test("the example request gets an answer like the example", async () => {
    const answer = await send(binding.verb, addressOf(binding.path, example), example.body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    expect(differences(example.response, answer.body)).toEqual([]);
  });
});

const streamed = operations.filter(({ streamed }) => streamed);

test.each(streamed)(
  "$id: the example request, streamed, tells events like those of the example",
  async ({ id, binding, streamed }) => {
    const { body, events = [], ...example } = EXAMPLES[id] as OperationExample;
    const response = await fetch(new URL(addressOf(binding.path, example), app.url), {
      method: binding.verb,
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ ...(body as object), [streamed?.by ?? ""]: true }),
    });
    const told = (await response.text()).split("\n\n").map((line) => line.slice("data: ".length));
    expect(told.slice(-2)).toEqual(["[DONE]", ""]);
    const actual = told.slice(0, -2).map((line) => JSON.parse(line) as unknown);
    expect(differences([events[0], events.at(-1)], [actual[0], actual.at(-1)])).toEqual([]);
  },
);

describe("fields of any form: what the document allows is taken, and nothing else", () => {
  const untyped: DescField[] = [
    ...CreateChatCompletionRequestSchema.fields,
    ...ChatMessageSchema.fields,
  ].filter(({ message }) => message && isUntyped(message));
  const complete = (field: DescField, value: unknown) => {
    const { body } = EXAMPLES.CreateChatCompletion as { body: object };
    if (field.parent !== ChatMessageSchema) return { ...body, [field.name]: value };
    return { ...body, messages: [{ role: "user", content: "hi", [field.name]: value }] };
  };

  test.each(untyped.map((field) => [String(field), field] as const))("%s", async (_name, field) => {
    const schema = JSON.parse(getOption(field, json_schema)) as Schema;
    for (const value of valuesOf(schema)) {
      const taken = await send("POST", "/v1/chat/completions", complete(field, value));
      expect(taken.status, JSON.stringify(value)).toBe(200);
    }
    for (const value of [{ other: 1 }, ["other", 1], 7]) {
      const refused = await send("POST", "/v1/chat/completions", complete(field, value));
      expect(refused.status, JSON.stringify(value)).toBe(400);
      expect(JSON.stringify(refused.body)).toContain(field.name);
    }
  });
});

/** Values of each kind that the schema has: the shortest texts, lists of one. */
function valuesOf({ enum: values, const: only, anyOf, type, ...rest }: Schema): unknown[] {
  if (Array.isArray(values)) return values as unknown[];
  if (only !== undefined) return [only];
  if (Array.isArray(anyOf)) return (anyOf as Schema[]).flatMap(valuesOf);
  return [type].flat().flatMap((one): unknown[] => {
    if (one === "null") return [null];
    if (one === "string") return ["x".repeat(Number(rest.minLength ?? 1))];
    if (one === "array") return rest.items ? valuesOf(rest.items as Schema).map((value) => [value]) : [[]];
    const properties = Object.entries((rest.properties ?? {}) as Record<string, Schema>);
    return [Object.fromEntries(properties.map(([name, schema]) => [name, valuesOf(schema)[0]]))];
  });
}

/** A call that ends in the error, for each error that a caller alone can bring about. */
const FAILING: Partial<Record<Reason, () => Promise<Answer>>> = {
  invalid_argument: () => send("POST", "/v1/keys", { name: "" }),
  context_length_exceeded: () => generate(key, "word ".repeat(9_000)),
  missing_api_key: () => send("GET", "/v1/me", undefined, ""),
  invalid_api_key: () => send("GET", "/v1/me", undefined, `${key.secret}x`),
  revoked_api_key: async () => {
    const { id, secret } = await createTestKey(operatorOf(app), { accountId: key.accountId });
    await operatorOf(app).revokeKey({ keyId: id });
    return await send("GET", "/v1/me", undefined, secret);
  },
  expired_api_key: async () => {
    const { id, secret } = await createTestKey(operatorOf(app), { accountId: key.accountId });
    await app.database.owner`UPDATE vx.keys SET expires_at = now() WHERE id = ${id}`;
    return await send("GET", "/v1/me", undefined, secret);
  },
  insufficient_balance: async () => generate(await createTestKey(operatorOf(app)), "Hello"),
  insufficient_scope: async () => {
    const narrow = await createTestKey(operatorOf(app), { accountId: key.accountId, scopes: ["read"] });
    return await send("GET", "/v1/keys", undefined, narrow.secret);
  },
  not_found: () => send("GET", "/v1/keys/key_01kam4xy3wf4dtyhvcm8qtc5cg", undefined),
  model_not_found: () => send("GET", "/v1/models/none", undefined),
  key_limit_reached: async () => {
    await operatorOf(app).putPlan({ name: "one", rpm: 60, maxActiveKeys: 1 });
    const only = await createTestKey(operatorOf(app), { plan: "one" });
    return await send("POST", "/v1/keys", { name: "another" }, only.secret);
  },
  request_too_large: () => send("POST", "/v1/keys", { name: "x".repeat(70_000) }),
  unsupported_media_type: () => send("POST", "/v1/keys", {}, key.secret, { "content-type": "text/plain" }),
  idempotency_key_reused: async () => {
    await generate(key, "Hello", { "idempotency-key": "order-1" });
    return await generate(key, "Good morning", { "idempotency-key": "order-1" });
  },
  rate_limit_exceeded: async () => {
    const slow = await createTestKey(operatorOf(app), { accountId: key.accountId, rateLimitRpm: 1 });
    // Three, as a minute may end between two.
    for (let i = 0; i < 2; i++) await send("GET", "/v1/models", undefined, slow.secret);
    return await send("GET", "/v1/models", undefined, slow.secret);
  },
};

test.each(Object.entries(FAILING))("%s looks like its example", async (reason, fail) => {
  const answer = await fail();
  expect(answer.body).toMatchObject({ error: { code: reason } });
  expect(answer.status).toBe(ERRORS[reason as Reason].status);
  expect(differences(errorExample(reason as Reason), answer.body)).toEqual([]);
});

function generate({ secret }: TestKey, content: string, headers: Record<string, string> = {}) {
  const body = { model: "vx-sandbox-small", messages: [{ role: "user", content }] };
  return send("POST", "/v1/generate", body, secret, headers);
}

function addressOf(template: string, { path = {}, query = {} }: OperationExample): string {
  const values: Record<string, string> = { ...path, ...("key_id" in path ? { key_id: otherKeyId } : {}) };
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) search.set(name, String(value));
  return search.size === 0 ? filled : `${filled}?${search}`;
}

type Answer = { status: number; body: unknown };

async function send(
  verb: string,
  path: string,
  body: unknown,
  secret = key.secret,
  more: Record<string, string> = {},
): Promise<Answer> {
  const headers: Record<string, string> = secret === "" ? {} : { authorization: `Bearer ${secret}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  Object.assign(headers, more);
  const response = await fetch(new URL(path, app.url), {
    method: verb,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as unknown };
}

/** Where names or types differ. A time that is set in one and null in the other is no difference. */
function differences(example: unknown, actual: unknown, path = "$"): string[] {
  const [one, other] = [kindOf(example), kindOf(actual)];
  if (one !== other) {
    const nullable = [one, other].includes("null") && /_at$/.test(path);
    return nullable ? [] : [`${path}: ${one} in the example, ${other} in the answer`];
  }
  if (Array.isArray(example) && Array.isArray(actual)) {
    if (example.length > 0 && actual.length === 0) return [`${path}: empty in the answer`];
    const types = [example, actual].map((list) => list.map((one) => (one as Detail)?.["@type"]).join());
    if (path.endsWith(".details") && types[0] !== types[1])
      return [`${path}: ${types[0]} in the example, ${types[1]} in the answer`];
    const length = Math.min(example.length, actual.length);
    return Array.from({ length }, (_, i) => differences(example[i], actual[i], `${path}[${i}]`)).flat();
  }
  if (one !== "object") return [];
  const [left, right] = [example, actual] as Record<string, unknown>[];
  const names = new Set([...Object.keys(left ?? {}), ...Object.keys(right ?? {})]);
  return [...names].flatMap((name) => differences(left?.[name], right?.[name], `${path}.${name}`));
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}
