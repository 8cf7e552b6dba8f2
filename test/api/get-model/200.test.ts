import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ModelService } from "../../../gen/vx/v1/model_pb.js";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../../support/fixtures.ts";
import { createModelsFile, modelsYaml } from "../../support/models.ts";
import { bearer, protocols } from "../../support/protocols.ts";

const IDS = [
  "plain",
  "with.dots_and-dashes",
  "meta/llama-3",
  "a/b/c",
  "vendor/model:free",
  "a:revoke",
  "x".repeat(128),
];

const file = createModelsFile(modelsYaml(IDS));
let app: TestApp;
let key: TestKey;

beforeAll(async () => {
  app = await startTestApp({ env: { VX_MODELS: file.path } });
  key = await createTestKey(operatorOf(app), { scopes: ["read"] });
});
afterAll(async () => {
  await app.stop();
  file.remove();
});

describe.each(protocols)("$name", ({ open }) => {
  test.each(IDS)("%.30s", async (id) => {
    const caller = open(app.url);
    const outcome = await caller.call(ModelService.method.getModel, { model: id }, bearer(key.secret));
    caller.close();
    expect(outcome).toMatchObject({
      ok: true,
      message: { model: { id, object: "model", contextWindow: 100 } },
    });
  });
});

test.each(IDS)("REST: %.30s, percent-encoded", async (id) => {
  const answer = await fetch(`${app.url}/v1/models/${encodeURIComponent(id)}`, {
    headers: bearer(key.secret),
  });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ id, object: "model", created: 0, owned_by: "vx" });
});
