import Anthropic from "@anthropic-ai/sdk";
import { afterAll, describe, expect, test } from "vitest";
import { ModelService } from "../../../gen/vx/v1/model_pb.js";
import { useOwnApp, useTestApp } from "../../support/app.ts";
import { useTestKey } from "../../support/fixtures.ts";
import { createModelsFile, modelsYaml } from "../../support/models.ts";
import { bearer, callOf, messageOf } from "../../support/protocols.ts";

const IDS = ["a", "b:free", "meta/llama-3", "B", "z.9"];
/** In the order of page tokens. */
const SORTED = ["B", "a", "b:free", "meta/llama-3", "z.9"];

const file = createModelsFile(modelsYaml(IDS));
const app = useOwnApp({ env: { VX_MODELS: file.path } });
const builtIn = useTestApp();
const key = useTestKey(app, { scopes: ["read"] });
const builtInKey = useTestKey(builtIn);
const call = callOf(app);
const { listModels } = ModelService.method;
afterAll(() => file.remove());

test("lists the built-in models with their limits and prices", async () => {
  const message = messageOf(await callOf(builtIn)(listModels, {}, builtInKey.secret));
  expect(message).toMatchObject({ object: "list", nextPageToken: "" });
  expect(message.data).toMatchObject([
    { id: "vx-sandbox-embed", capabilities: ["embeddings"] },
    { id: "vx-sandbox-large", contextWindow: 128_000, maxOutputTokens: 32_000 },
    {
      id: "vx-sandbox-small",
      object: "model",
      created: 1_763_683_200n,
      ownedBy: "vx",
      contextWindow: 8_192,
      maxOutputTokens: 4_096,
      inputMicrosPerMillionTokens: 250_000n,
      outputMicrosPerMillionTokens: 1_250_000n,
    },
  ]);
});

test("pages have no gap and no overlap, and the last one has no token", async () => {
  const ids: string[][] = [];
  let pageToken = "";
  do {
    const request = { pageSize: 2, pageToken };
    const { data, nextPageToken } = messageOf(await call(listModels, request, key.secret));
    ids.push(data.map(({ id }) => id));
    pageToken = nextPageToken;
  } while (pageToken !== "");
  expect(ids).toEqual([SORTED.slice(0, 2), SORTED.slice(2, 4), SORTED.slice(4)]);
});

test("the REST response suits native and OpenAI clients, and the call counts against the limit", async () => {
  const answer = await fetch(`${app.url}/v1/models?page_size=1`, { headers: bearer(key.secret) });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("ratelimit")).not.toBeNull();
  expect(await answer.json()).toEqual({
    object: "list",
    data: [
      {
        id: "B",
        object: "model",
        created: 0,
        owned_by: "vx",
        context_window: 100,
        max_output_tokens: 50,
        input_micros_per_million_tokens: 1,
        output_micros_per_million_tokens: 2,
        prices: {
          input: 1,
          cached_input: 1,
          cache_write: 1,
          cache_write_1h: 1,
          output: 2,
          reasoning: 2,
          image: 0,
          request: 0,
          tiers: [],
        },
        capabilities: [],
        aliases: [],
        type: "model",
        display_name: "B",
        created_at: "1970-01-01T00:00:00Z",
      },
    ],
    next_page_token: Buffer.from("models:B").toString("base64url"),
    has_more: true,
    first_id: "B",
    last_id: "B",
  });
});

describe("Anthropic's SDK", () => {
  const open = () => new Anthropic({ apiKey: null, authToken: key.secret, baseURL: app.url });
  const all = async (models: AsyncIterable<{ id: string }>) => {
    const ids: string[] = [];
    for await (const { id } of models) ids.push(id);
    return ids;
  };

  test("lists all models page by page, from both ends", async () => {
    const { models } = open();
    expect(await all(models.list())).toEqual(SORTED);
    expect(await all(models.list({ limit: 2 }))).toEqual(SORTED);
    expect(await all(models.list({ limit: 1, after_id: "b:free" }))).toEqual(SORTED.slice(3));
    const before = await models.list({ limit: 2, before_id: "z.9" });
    expect(before.data.map(({ id }) => id)).toEqual(SORTED.slice(2, 4));
    expect(before.has_more).toBe(true);
    expect(await all(models.list({ before_id: "B" }))).toEqual([]);
  });

  test("reads one model", async () => {
    expect(await open().models.retrieve("meta/llama-3")).toMatchObject({
      type: "model",
      display_name: "meta/llama-3",
      created_at: "1970-01-01T00:00:00Z",
    });
  });
});
