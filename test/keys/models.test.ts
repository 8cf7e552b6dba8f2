import { beforeAll, expect, test } from "vitest";
import { EmbedService } from "../../gen/vx/v1/embed_pb.js";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { post } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { callOf } from "../support/protocols.ts";

const SMALL = "vx-sandbox-small";
const LARGE = "vx-sandbox-large";
const messages = [{ role: "user", content: "hello" }];
let accountId: string;

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);
beforeAll(async () => {
  ({ accountId } = await createTestKey(operator, { plan: "scale" }));
  await operator.creditAccount({ accountId, amountMicros: 1_000_000n, reason: "test", idempotencyKey: "models" });
});

async function keyFor(...models: string[]): Promise<string> {
  const scopes = ["generate", "read", "keys"];
  return (await operator.createKey({ accountId, name: "models", plan: "scale", scopes, models })).secret;
}

test("a key with models uses these and lists only them", async () => {
  const secret = await keyFor(SMALL);
  const { generate, quoteGenerate } = GenerateService.method;
  const allowed = { model: SMALL, messages, maxTokens: 16 };
  const other = { ...allowed, model: LARGE };
  expect(await call(generate, allowed, secret)).toMatchObject({ ok: true });
  const refused = [
    await call(generate, other, secret),
    await call(quoteGenerate, other, secret),
    await call(ModelService.method.getModel, { model: LARGE }, secret),
    await call(EmbedService.method.embed, { model: "vx-sandbox-embed", input: ["x"] }, secret),
  ];
  for (const outcome of refused) expect(outcome).toMatchObject({ ok: false, reason: "model_not_allowed" });
  const listed = await call(ModelService.method.listModels, {}, secret);
  expect(listed.ok && listed.message.data.map(({ id }) => id)).toEqual([SMALL]);
});

test("a key gives only models that it may use, which are also the default, and changes them", async () => {
  const secret = await keyFor(SMALL, LARGE);
  const { createKey, updateKey } = KeyService.method;
  const create = (models: string[]) => call(createKey, { name: "child", models }, secret);
  expect(await create(["vx-sandbox-embed"])).toMatchObject({ fields: ["models"] });
  expect(await create(["no-such-model"])).toMatchObject({ fields: ["models[0]"] });
  const child = await create([]);
  expect(child).toMatchObject({ message: { apiKey: { models: [SMALL, LARGE] } } });
  const keyId = child.ok ? (child.message.apiKey?.id ?? "") : "";
  const update = (models: string[]) => call(updateKey, { keyId, models, updateMask: { paths: ["models"] } }, secret);
  expect(await update([LARGE])).toMatchObject({ message: { apiKey: { models: [LARGE] } } });
  expect(await update(["vx-sandbox-embed"])).toMatchObject({ fields: ["models"] });
  expect(await update([])).toMatchObject({ message: { apiKey: { models: [SMALL, LARGE] } } });
});

test.each([
  ["/v1/chat/completions", { messages }],
  ["/v1/completions", { prompt: "hello" }],
  ["/v1/responses", { input: "hello" }],
  ["/v1/messages", { messages, max_tokens: 16 }],
  ["/v1/messages/count_tokens", { messages }],
  ["/v1/embeddings", { input: "hello" }],
])("%s refuses other models", async (path, body) => {
  const secret = await keyFor(SMALL);
  const model = path === "/v1/embeddings" ? "vx-sandbox-embed" : LARGE;
  const text = expect.stringContaining("cannot use the model");
  expect(await post(app, { secret }, path, { model, ...body })).toMatchObject({ status: 403, text });
});

test("Anthropic's list has only the models of the key", async () => {
  const headers = { authorization: `Bearer ${await keyFor(LARGE)}`, "anthropic-version": "2023-06-01" };
  const list = (await (await fetch(`${app.url}/v1/models`, { headers })).json()) as { data: { id: string }[] };
  expect(list.data.map(({ id }) => id)).toEqual([LARGE]);
  expect((await fetch(`${app.url}/v1/models/${SMALL}`, { headers })).status).toBe(403);
});
