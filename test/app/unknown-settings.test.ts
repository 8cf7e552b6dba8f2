import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { nearestSetting } from "../../src/app/settings/config.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createModelsFile } from "../support/models.ts";

const MODELS = `models:
  - id: one
    context_window: 1000
    max_output_tokens: 100
    input_micros_per_million_tokens: 1
    output_micros_per_million_tokens: 1
    upstream: {kind: openai, base_url: "http://127.0.0.1:1", api_key_env: VX_UPSTREAM_KEY, model: one}
`;

let app: TestApp;
const file = createModelsFile(MODELS);

beforeAll(async () => {
  vi.stubEnv("VX_SHUTDOWN_DELEY", "value-of-the-setting");
  vi.stubEnv("VX_UPSTREAM_KEY", "value-of-the-key");
  vi.stubEnv("VX_KEY", "value-of-the-key");
  vi.stubEnv("VX_WORKERS", "1");
  app = await startTestApp({ env: { VX_MODELS: file.path } });
});
afterAll(async () => {
  await app.stop();
  file.remove();
  vi.unstubAllEnvs();
});

test("an unknown variable logs a warning with the nearest setting and without its value", () => {
  const warnings = app
    .logText()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ variable }) => variable !== undefined);
  expect(warnings.find(({ variable }) => variable === "VX_SHUTDOWN_DELEY")).toMatchObject({
    level: "warn",
    nearest: "VX_SHUTDOWN_DELAY",
    msg: "unknown setting VX_SHUTDOWN_DELEY is ignored; did you mean VX_SHUTDOWN_DELAY?",
  });
  expect(app.logText()).not.toContain("value-of-the-setting");
});

test("settings, variables of clients and keys of upstreams log no warning", () => {
  expect(app.logText()).not.toMatch(/"variable":"(VX_UPSTREAM_KEY|VX_KEY|VX_WORKERS)"/);
});

test.each([
  ["VX_PORT", "PORT"],
  ["VX_TLS_CRT", "VX_TLS_CERT"],
  ["VX_ADMINTOKEN", "VX_ADMIN_TOKEN"],
  ["VX_WORKER", "VX_WORKERS"],
  ["VX_DATABASE_URL", "DATABASE_URL"],
])("the nearest setting to %s is %s", (name, nearest) => {
  expect(nearestSetting(name)).toBe(nearest);
});
