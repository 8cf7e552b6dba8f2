import { readFileSync } from "node:fs";
import { type DescField, getOption } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { ChatMessageSchema, CreateChatCompletionRequestSchema } from "../../gen/vx/openai/v1/chat_pb.js";
import { json_schema } from "../../gen/vx/options/v1/options_pb.js";
import { BUILT_IN_MODELS } from "../../src/models/built-in.ts";
import { isUntyped } from "../../src/rules/untyped-values.ts";
import { exampleValues } from "../../src/server/pages/openapi-page.ts";
import { developerServices } from "../../src/server/services.ts";
import { operationExamples } from "../../tools/openapi/examples.ts";
import type { OperationExample } from "../../tools/openapi/operation-example.ts";
import { operationsOf } from "../../tools/openapi/operations.ts";
import type { Schema } from "../../tools/openapi/schema.ts";
import { startTestApp } from "../support/app.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { useOperator, useTestKey } from "../support/fixtures.ts";
import { started } from "../support/started.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";
import { differences } from "./differences.ts";
import { type JsonAnswer, sendJson } from "./send-json.ts";

const stripe = started(() => FakeStripe.start());
const receiver = started(() => new WebhookReceiver().start());
const app = started(() => startTestApp({ env: { ...stripe.env, VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.1" } }));
const operator = useOperator(app);
const key = useTestKey(app, { scopes: ["generate", "read", "keys", "webhooks", "billing"] });
/** The id of the key in the examples. */
let otherKeyId: string;
/** A key that the calling key created. */
let childKeyId: string;
/** A generation of the account. */
let generationId: string;
/** A paid top-up of the account. */
let topUpId: string;

/** A webhook that received an event, and that event. */
let webhookId: string;
let eventId: string;
let webhookToDelete: string;

beforeAll(async () => {
  const { accountId } = key;
  const createChild = async () => {
    const { body } = await send("POST", "/v1/keys", EXAMPLES.CreateKey?.body);
    return (body as { api_key: { id: string } }).api_key.id;
  };
  otherKeyId = await createChild();
  childKeyId = await createChild();
  webhookId = await createWebhook(receiver.url());
  webhookToDelete = await createWebhook("https://hooks.example.com/");
  // Nothing can pay for it yet: a failed call.
  await send("POST", "/v1/generate", EXAMPLES.Generate?.body);
  await vi.waitFor(async () => expect((await send("GET", "/v1/failures", undefined)).body).not.toMatchObject({ failures: [] }));
  await operator.creditAccount({
    accountId,
    amountMicros: 10_000_000n,
    reason: "invoice 1001",
    idempotencyKey: "1001",
    expiresAt: timestampFromDate(new Date("2099-02-01T00:00:00Z")),
  });
  const [credited] = await receiver.until(1);
  eventId = String(credited?.headers["webhook-id"]);
  await vi.waitFor(async () => {
    const { body: page } = await send("GET", `/v1/webhooks/${webhookId}/deliveries?state=delivered`, undefined);
    expect((page as { deliveries: unknown[] }).deliveries).not.toEqual([]);
  });
  await send("PATCH", "/v1/account", { low_balance_micros: 1 });
  const { path, body } = { path: "/v1/generate", body: EXAMPLES.Generate?.body };
  const { body: generated } = await send("POST", path, { ...(body as object), user: "user-7" });
  generationId = (generated as { id: string }).id;
  const { body: created } = await send("POST", "/v1/topups", EXAMPLES.CreateTopUp?.body);
  topUpId = (created as { topup: { id: string } }).topup.id;
  for (const event of stripe.pay(topUpId)) await stripe.deliver(event, app.url);
  const settings = { enabled: true, thresholdMicros: 10_000_000n, amountMicros: 25_000_000n };
  await operator.putAutoTopUp({ accountId, ...settings, monthlyMaxMicros: 100_000_000n });
});

async function createWebhook(url: string): Promise<string> {
  const { body } = await send("POST", "/v1/webhooks", { url, types: ["credit.posted"], description: "test" });
  return (body as { webhook: { id: string } }).webhook.id;
}

const EXAMPLES = operationExamples(exampleValues(BUILT_IN_MODELS));
const operations = operationsOf(developerServices);

type BodySchema = { readonly properties: Readonly<Record<string, Schema>>; readonly required?: string[] };
type Body = { readonly content: { readonly "application/json": { readonly schema: { readonly $ref: string } } } };
type OpenApi = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly requestBody: Body }>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, BodySchema>> };
};
const document = JSON.parse(readFileSync("gen/openapi.json", "utf8")) as OpenApi;

test("every operation has an example, and every example has an operation", () => {
  expect(Object.keys(EXAMPLES).sort()).toEqual(operations.map(({ id }) => id).sort());
});

const unary = operations.filter(({ usual }) => usual.methodKind === "unary");

describe.each(unary)("$id", ({ id, binding }) => {
  const example = EXAMPLES[id] as OperationExample;

  const requests = [["", example] as const, ...Object.entries(example.more ?? {})];

  test.each(requests)("the example request %s gets a response like the example", async (_, one) => {
    const answer = await send(binding.verb, addressOf(binding, example), bodyOf(one));
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    expect(differences(one.response, answer.body)).toEqual([]);
  });
});

const streamed = operations.filter(({ streamed }) => streamed);

test.each(streamed)(
  "$id: the streamed example request returns events like those of the example",
  async ({ id, binding, streamed }) => {
    const { body, events = [], ...example } = EXAMPLES[id] as OperationExample;
    const response = await fetch(new URL(addressOf(binding, example), app.url), {
      method: binding.verb,
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ ...(body as object), [streamed?.by ?? ""]: true }),
    });
    const actual = eventsIn(await response.text());
    expect(differences([events[0], events.at(-1)], [actual[0], actual.at(-1)])).toEqual([]);
  },
);

/** Events have names, or `[DONE]` at the end. */
function eventsIn(stream: string): unknown[] {
  const blocks = stream.split("\n\n");
  expect(blocks.pop()).toBe("");
  if (!stream.startsWith("event: ")) expect(blocks.pop()).toBe("data: [DONE]");
  return blocks.map((block) => JSON.parse(block.slice(block.indexOf("data: ") + "data: ".length)) as unknown);
}

const withBody = operations.filter(({ bodyFields }) => bodyFields.length > 0);

/** The fields that an update can change but not clear. */
const NEVER_NULL: Readonly<Record<string, readonly string[]>> = {
  UpdateKey: ["name", "scopes"],
  UpdateWebhook: ["url", "state"],
};

describe.each(withBody)("nulls in $id", ({ id, binding }) => {
  const { body, ...example } = EXAMPLES[id] as OperationExample;
  const operation = document.paths[binding.path]?.[binding.verb.toLowerCase()];
  const name = operation?.requestBody.content["application/json"].schema.$ref.split("/").at(-1) ?? "";
  const { properties, required = [] } = document.components.schemas[name] as BodySchema;
  const fields = Object.keys(properties);

  test.each(fields)("%s is accepted as null exactly when the document allows it", async (field) => {
    const answer = await send(binding.verb, addressOf(binding, example), { ...(bodyOf({ body }) as object), [field]: null });
    const { description: _, ...schema } = properties[field] as { description?: string };
    // A schema without keywords accepts every value.
    const nullable = Object.keys(schema).length === 0 || JSON.stringify(schema).includes('"null"');
    expect(answer.status, JSON.stringify(answer.body)).toBe(nullable ? 200 : 400);
    expect(nullable).toBe(!required.includes(field) && !(NEVER_NULL[id] ?? []).includes(field));
  });
});

describe("untyped fields accept exactly the values that the document allows:", () => {
  const untyped: DescField[] = [...CreateChatCompletionRequestSchema.fields, ...ChatMessageSchema.fields].filter(
    (field) => field.message && isUntyped(field.message) && getOption(field, json_schema) !== "{}",
  );
  const complete = (field: DescField, value: unknown) => {
    const { body } = EXAMPLES.CreateChatCompletion as { body: object };
    const described = { name: "x", arguments: "{}" };
    if (field.parent !== ChatMessageSchema) {
      return { ...body, tools: [{ type: "function", function: described }], [field.name]: value };
    }
    const calls = [{ id: "1", type: "function", function: described }];
    return { ...body, messages: [{ role: "assistant", content: "hi", tool_calls: calls, [field.name]: value }] };
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

/** Minimal values of each type in the schema: the shortest strings, lists with one item. */
function valuesOf({ enum: values, const: only, anyOf, type, ...rest }: Schema): unknown[] {
  if (Array.isArray(values)) return values as unknown[];
  if (only !== undefined) return [only];
  if (Array.isArray(anyOf)) return (anyOf as Schema[]).flatMap(valuesOf);
  return [type].flat().flatMap((one): unknown[] => {
    if (one === "null") return [null];
    if (one === "string") return rest.contentMediaType ? ["{}"] : ["x".repeat(Number(rest.minLength ?? 1))];
    if (one === "number") return [rest.minimum];
    if (one === "boolean") return [true];
    if (one === "array") return rest.items ? valuesOf(rest.items as Schema).map((value) => [value]) : [[]];
    const properties = Object.entries((rest.properties ?? {}) as Record<string, Schema>);
    return [Object.fromEntries(properties.map(([name, schema]) => [name, valuesOf(schema)[0]]))];
  });
}

/** The body of an example with the event of this test. */
function bodyOf({ body }: Pick<OperationExample, "body">): unknown {
  return body && "event_id" in (body as object) ? { ...(body as object), event_id: eventId } : body;
}

type OperationBinding = { readonly verb: string; readonly path: string };

function addressOf({ verb, path: template }: OperationBinding, { path = {}, query = {} }: OperationExample): string {
  const keyId = verb === "PATCH" || template.endsWith(":rotate") ? childKeyId : otherKeyId;
  const id = template.startsWith("/v1/topups") ? topUpId : generationId;
  const own = {
    ...("key_id" in path && { key_id: keyId }),
    ...("webhook_id" in path && { webhook_id: verb === "DELETE" ? webhookToDelete : webhookId }),
    ...("id" in path && { id }),
  };
  const values: Record<string, string> = { ...path, ...own };
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) search.set(name, String(value));
  return search.size === 0 ? filled : `${filled}?${search}`;
}

function send(verb: string, path: string, body: unknown): Promise<JsonAnswer> {
  return sendJson(app.url, { verb, path, body, secret: key.secret });
}
