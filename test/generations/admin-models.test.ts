import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { type Operator, operatorOf } from "../support/fixtures.ts";
import { createModelsFile, modelsYaml } from "../support/models.ts";

const SECRET = "sk-canary-of-the-upstream";
const file = createModelsFile(
  `${modelsYaml(["b"])}  - id: a
    context_window: 100
    max_output_tokens: 50
    input_micros_per_million_tokens: 1
    output_micros_per_million_tokens: 2
    upstreams:
      - {kind: openai, base_url: "https://x.example/v1", api_key_env: VX_TEST_UPSTREAM_KEY, model: big, timeout_ms: 5000}
      - {kind: sandbox}
`,
);
let app: TestApp;
let operator: Operator;

beforeAll(async () => {
  vi.stubEnv("VX_TEST_UPSTREAM_KEY", SECRET);
  app = await startTestApp({ env: { VX_MODELS: file.path } });
  operator = operatorOf(app);
});
afterAll(async () => {
  await app.stop();
  vi.unstubAllEnvs();
  file.remove();
});

test("lists the models by id with their upstreams in order, without keys", async () => {
  const { models, nextPageToken } = await operator.listModels({});
  expect(models).toMatchObject([
    {
      id: "a",
      contextWindow: 100,
      inputMicrosPerMillionTokens: 1n,
      outputMicrosPerMillionTokens: 2n,
      upstreams: [
        { kind: "openai", baseUrl: "https://x.example/v1", model: "big", timeoutMs: 5_000 },
        { kind: "sandbox", baseUrl: "", model: "" },
      ],
    },
    { id: "b" },
  ]);
  expect(nextPageToken).toBe("");
  const text = JSON.stringify(models, (_, value) => (typeof value === "bigint" ? String(value) : value));
  expect(text).not.toContain(SECRET);
  expect(app.logText()).not.toContain(SECRET);
});

test("pages have no gap and no overlap", async () => {
  const first = await operator.listModels({ pageSize: 1 });
  const second = await operator.listModels({ pageSize: 1, pageToken: first.nextPageToken });
  expect([...first.models, ...second.models].map(({ id }) => id)).toEqual(["a", "b"]);
  expect(second.nextPageToken).toBe("");
});
