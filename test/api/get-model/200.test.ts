import { afterAll, expect, test } from "vitest";
import { ModelService } from "../../../gen/vx/v1/model_pb.js";
import { useOwnApp } from "../../support/app.ts";
import { createTestKey, operatorOf, type TestKey, useTestKey } from "../../support/fixtures.ts";
import { createModelsFile, modelsYaml } from "../../support/models.ts";
import { bearer, callOf } from "../../support/protocols.ts";

const IDS = ["plain", "with.dots_and-dashes", "meta/llama-3", "a/b/c", "vendor/model:free", "a:revoke", "x".repeat(128)];

const file = createModelsFile(
  `${modelsYaml(IDS)}
  - id: detailed
    aliases: [latest, "vendor/latest"]
    capabilities: [tools, images]
    context_window: 100
    max_output_tokens: 50
    prices: {input: 10, cached_input: 1, cache_write: 12, cache_write_1h: 16, output: 20, reasoning: 30, image: 4, request: 5, tiers: [{above_input_tokens: 50, input: 40, output: 50}]}
    upstream: {kind: sandbox}
`,
);
const app = useOwnApp({ env: { VX_MODELS: file.path } });
const key = useTestKey(app, { scopes: ["read"] });
const call = callOf(app);
afterAll(() => file.remove());

test.each(IDS)("%.30s", async (id) => {
  const outcome = await call(ModelService.method.getModel, { model: id }, key.secret);
  expect(outcome).toMatchObject({ ok: true, message: { model: { id, object: "model", contextWindow: 100 } } });
});

test.each(IDS)("REST: %.30s, percent-encoded", async (id) => {
  const answer = await fetch(`${app.url}/v1/models/${encodeURIComponent(id)}`, { headers: bearer(key.secret) });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ id, object: "model", created: 0, owned_by: "vx" });
});

test.each(["detailed", "latest", "vendor%2Flatest"])("%s: capabilities, aliases and all prices", async (name) => {
  const answer = await fetch(`${app.url}/v1/models/${name}`, { headers: bearer(key.secret) });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({
    id: "detailed",
    capabilities: ["tools", "images"],
    aliases: ["latest", "vendor/latest"],
    prices: {
      input: 10,
      cached_input: 1,
      cache_write: 12,
      cache_write_1h: 16,
      output: 20,
      reasoning: 30,
      image: 4,
      request: 5,
      tiers: [
        {
          above_input_tokens: 50,
          input: 40,
          cached_input: 40,
          cache_write: 40,
          cache_write_1h: 40,
          output: 50,
          reasoning: 50,
          image: 4,
          request: 5,
        },
      ],
    },
  });
});

async function createPayer(): Promise<TestKey> {
  const operator = operatorOf(app);
  const payer = await createTestKey(operator);
  await operator.creditAccount({ accountId: payer.accountId, amountMicros: 1_000_000n, reason: "test", idempotencyKey: "test" });
  return payer;
}

test("a call by an alias gets a reply and a charge with the model's id", async () => {
  const payer = await createPayer();
  const call = await fetch(`${app.url}/v1/generate`, {
    method: "POST",
    headers: { ...bearer(payer.secret), "content-type": "application/json" },
    body: JSON.stringify({ model: "latest", messages: [{ role: "user", content: "Hi" }], max_tokens: 5 }),
  });
  expect(await call.json()).toMatchObject({ model: "detailed" });
  const ledger = await fetch(`${app.url}/v1/ledger?page_size=1`, { headers: bearer(payer.secret) });
  expect(await ledger.json()).toMatchObject({ entries: [{ model: "detailed" }] });
});

test.each([
  ["chat/completions", { messages: [{ role: "user", content: "Hi" }], max_tokens: 5 }],
  ["completions", { prompt: "Hi", max_tokens: 5 }],
  ["responses", { input: "Hi", max_output_tokens: 5 }],
  ["messages", { messages: [{ role: "user", content: "Hi" }], max_tokens: 5 }],
])("each event of a stream of /v1/%s names the model's id", async (path, body) => {
  const payer = await createPayer();
  const call = await fetch(`${app.url}/v1/${path}`, {
    method: "POST",
    headers: { ...bearer(payer.secret), "content-type": "application/json" },
    body: JSON.stringify({ model: "latest", stream: true, ...body }),
  });
  const named = [...(await call.text()).matchAll(/"model": ?"([^"]*)"/g)].map(([, name]) => name);
  expect(named.length).toBeGreaterThan(0);
  expect(new Set(named)).toEqual(new Set(["detailed"]));
});
