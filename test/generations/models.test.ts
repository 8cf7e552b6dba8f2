import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { post, sendAnyJson } from "../support/any-json.ts";
import { useOwnApp, useTestApp } from "../support/app.ts";
import { type TestKey, useOperator, useTestKey } from "../support/fixtures.ts";
import { createModelsFile, modelsYaml } from "../support/models.ts";
import { chargesOf, createPaidKey } from "../support/openai.ts";
import { callOf, messageOf } from "../support/protocols.ts";

const IDS = ["plain", "with.dots_and-dashes", "meta/llama-3", "B", "a/b/c", "vendor/model:free", "a:revoke", "x".repeat(128)];
const PRICES = {
  input: 10,
  cached_input: 1,
  cache_write: 12,
  cache_write_1h: 16,
  output: 20,
  reasoning: 30,
  image: 4,
  request: 5,
};
const TIER = { above_input_tokens: 50, input: 40, output: 50 };

const file = createModelsFile(
  `${modelsYaml(IDS)}
  - id: detailed
    aliases: [latest, "vendor/latest"]
    capabilities: [tools, images]
    context_window: 100
    max_output_tokens: 50
    prices: ${JSON.stringify({ ...PRICES, tiers: [TIER] })}
    upstream: {kind: sandbox}
`,
);
afterAll(() => file.remove());
const app = useOwnApp({ env: { VX_MODELS: file.path } });
const key = useTestKey(app, { scopes: ["read"] });
const operator = useOperator(app);
const call = callOf(app);
const { getModel, listModels } = ModelService.method;
const get = (path: string) => sendAnyJson(app.url, { verb: "GET", path, secret: key.secret });

test.each(IDS)("%.30s is read by its id, percent-encoded over REST", async (id) => {
  const model = { id, object: "model", contextWindow: 100 };
  expect(await call(getModel, { model: id }, key.secret)).toMatchObject({ ok: true, message: { model } });
  const body = { id, object: "model", created: 0, owned_by: "vx" };
  expect(await get(`/v1/models/${encodeURIComponent(id)}`)).toMatchObject({ status: 200, body });
});

test.each(["detailed", "latest", "vendor%2Flatest"])("%s: capabilities, aliases and all prices", async (name) => {
  const cached = { cached_input: 40, cache_write: 40, cache_write_1h: 40 };
  const tiers = [{ ...TIER, ...cached, reasoning: 50, image: 4, request: 5 }];
  const aliases = ["latest", "vendor/latest"];
  const body = { id: "detailed", capabilities: ["tools", "images"], aliases, prices: { ...PRICES, tiers } };
  expect(await get(`/v1/models/${name}`)).toMatchObject({ status: 200, body });
});

describe("a call by an alias", () => {
  let payer: TestKey;
  beforeAll(async () => {
    payer = await createPaidKey(operator);
  });
  const messages = [{ role: "user", content: "Hi" }];

  test("gets a reply and a charge with the model's id", async () => {
    const { json } = await post(app, payer, "/v1/generate", { model: "latest", messages, max_tokens: 5 });
    expect(json.model).toBe("detailed");
    expect(await chargesOf(operator, payer)).toMatchObject([{ model: "detailed" }]);
  });

  test("counts against a limit of the model that was set by an alias", async () => {
    const limited = await createPaidKey(operator);
    const limit = { metric: "generations", window: "total", amount: 1n, model: "vendor/latest" };
    await operator.setLimit({ owner: { case: "keyId", value: limited.id }, limit });
    const statuses: number[] = [];
    for (const model of ["detailed", "latest"])
      statuses.push((await post(app, limited, "/v1/generate", { model, messages, max_tokens: 5 })).status);
    expect(statuses).toEqual([200, 429]);
  });

  test.each([
    ["chat/completions", { messages, max_tokens: 5 }],
    ["completions", { prompt: "Hi", max_tokens: 5 }],
    ["responses", { input: "Hi", max_output_tokens: 5 }],
    ["messages", { messages, max_tokens: 5 }],
  ])("has the model's id in each event of a stream of /v1/%s", async (path, body) => {
    const { text } = await post(app, payer, `/v1/${path}`, { model: "latest", stream: true, ...body });
    const named = [...text.matchAll(/"model": ?"([^"]*)"/g)].map(([, name]) => name);
    expect(new Set(named)).toEqual(new Set(["detailed"]));
  });
});

describe("the list", () => {
  const builtIn = useTestApp();
  const builtInKey = useTestKey(builtIn);
  /** In the order of page tokens. */
  const SORTED = [...IDS, "detailed"].sort();

  test("has the built-in models with their limits and prices", async () => {
    const message = messageOf(await callOf(builtIn)(listModels, {}, builtInKey.secret));
    expect(message).toMatchObject({ object: "list", nextPageToken: "" });
    const prices = { inputMicrosPerMillionTokens: 250_000n, outputMicrosPerMillionTokens: 1_250_000n };
    const limits = { contextWindow: 8_192, maxOutputTokens: 4_096 };
    expect(message.data).toMatchObject([
      { id: "vx-sandbox-embed", capabilities: ["embeddings"] },
      { id: "vx-sandbox-large", contextWindow: 128_000, maxOutputTokens: 32_000 },
      { id: "vx-sandbox-small", object: "model", created: 1_763_683_200n, ownedBy: "vx", ...limits, ...prices },
    ]);
  });

  test("has pages without gap and overlap, and the last one has no token", async () => {
    const ids: string[][] = [];
    let pageToken = "";
    do {
      const { data, nextPageToken } = messageOf(await call(listModels, { pageSize: 4, pageToken }, key.secret));
      ids.push(data.map(({ id }) => id));
      pageToken = nextPageToken;
    } while (pageToken !== "");
    expect(ids).toEqual([SORTED.slice(0, 4), SORTED.slice(4, 8), SORTED.slice(8)]);
  });

  test("over REST suits native and OpenAI clients", async () => {
    const { status, body } = await get("/v1/models?page_size=1");
    const limits = { context_window: 100, max_output_tokens: 50 };
    const prices = { input: 1, cached_input: 1, cache_write: 1, cache_write_1h: 1, output: 2, reasoning: 2 };
    const model = {
      id: "B",
      object: "model",
      created: 0,
      owned_by: "vx",
      ...limits,
      input_micros_per_million_tokens: 1,
      output_micros_per_million_tokens: 2,
      prices: { ...prices, image: 0, request: 0, tiers: [] },
      capabilities: [],
      aliases: [],
      type: "model",
      display_name: "B",
      created_at: "1970-01-01T00:00:00Z",
    };
    const next_page_token = Buffer.from("models:B").toString("base64url");
    expect(status).toBe(200);
    expect(body).toEqual({ object: "list", data: [model], next_page_token, has_more: true, first_id: "B", last_id: "B" });
  });

  test("is read by Anthropic's SDK page by page, from both ends", async () => {
    const { models } = new Anthropic({ apiKey: null, authToken: key.secret, baseURL: app.url });
    const all = async (list: AsyncIterable<{ id: string }>) => {
      const ids: string[] = [];
      for await (const { id } of list) ids.push(id);
      return ids;
    };
    expect(await all(models.list())).toEqual(SORTED);
    expect(await all(models.list({ limit: 2 }))).toEqual(SORTED);
    expect(await all(models.list({ limit: 1, after_id: SORTED[5] as string }))).toEqual(SORTED.slice(6));
    const before = await models.list({ limit: 2, before_id: SORTED[8] as string });
    expect(before.data.map(({ id }) => id)).toEqual(SORTED.slice(6, 8));
    expect(before.has_more).toBe(true);
    expect(await all(models.list({ before_id: "B" }))).toEqual([]);
    const own = { type: "model", display_name: "meta/llama-3", created_at: "1970-01-01T00:00:00Z" };
    expect(await models.retrieve("meta/llama-3")).toMatchObject(own);
  });
});
