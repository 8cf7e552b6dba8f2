import { randomBytes } from "node:crypto";
import Anthropic from "@anthropic-ai/sdk";
import { afterEach, describe, expect, test, vi } from "vitest";
import { generateKey, maskOfKey } from "../../src/domain/credentials.ts";
import type { Lane } from "../../src/domain/lane.ts";
import { sendAnyJson } from "../support/any-json.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { SMALL, said, usePaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";

const app = useOwnApp({ env: { VX_CORS_ORIGINS: "https://app.example.com" } });
const key = usePaidKey(app);
afterEach(() => void vi.unstubAllEnvs());

const MESSAGE = { model: SMALL, max_tokens: 20, messages: [said("Hello")] };
const VERSION = { "anthropic-version": "2023-06-01" };

const call = async (verb: string, path: string, headers: Record<string, string>, body?: object) => {
  const { status, body: json } = await sendAnyJson(app.url, { verb, path, headers, body, secret: "" });
  return { status, json };
};
const post = (path: string, headers: Record<string, string>) => call("POST", path, headers, MESSAGE);

describe("below /anthropic", () => {
  test("the official client works with only the base URL and the key changed", async () => {
    const client = new Anthropic({ baseURL: `${app.url}/anthropic`, apiKey: key.secret, maxRetries: 0 });
    expect((await client.messages.create(MESSAGE)).type).toBe("message");
    const stream = client.messages.stream(MESSAGE);
    expect((await stream.finalMessage()).usage.output_tokens).toBeGreaterThan(0);
    const { max_tokens: _, ...counted } = MESSAGE;
    expect((await client.messages.countTokens(counted)).input_tokens).toBeGreaterThan(0);
    expect((await client.models.retrieve(SMALL)).capabilities?.thinking.types.enabled.supported).toBe(true);
    const ids = [];
    for await (const { id } of client.models.list({ limit: 1 })) ids.push(id);
    expect(ids).toContain(SMALL);
  });

  test("the official client sends the API key of its variable, not the auth token, at both addresses", async () => {
    for (const baseURL of [`${app.url}/anthropic`, app.url]) {
      const open = (options = {}) => new Anthropic({ baseURL, maxRetries: 0, logLevel: "off", ...options });
      vi.stubEnv("ANTHROPIC_API_KEY", key.secret);
      vi.stubEnv("ANTHROPIC_AUTH_TOKEN", "other");
      expect((await open().messages.create(MESSAGE)).type).toBe("message");
      vi.stubEnv("ANTHROPIC_API_KEY", "other");
      vi.stubEnv("ANTHROPIC_AUTH_TOKEN", key.secret);
      const refused = open().messages.create(MESSAGE);
      await expect(refused).rejects.toThrow("The value of the header 'Authorization'");
      const explicit = open({ authToken: key.secret });
      expect((await explicit.messages.create(MESSAGE)).type).toBe("message");
    }
  });

  test.each(["messages", "messages/count_tokens"])("the key of POST %s can be in x-api-key", async (path) => {
    for (const headers of [{ "x-api-key": key.secret }, bearer(key.secret)])
      expect((await post(`/anthropic/v1/${path}`, headers)).status).toBe(200);
  });

  test("Bearer applies if both headers are sent", async () => {
    const path = "/anthropic/v1/messages";
    expect((await post(path, { ...bearer(key.secret), "x-api-key": "other" })).status).toBe(200);
    const refused = await post(path, { ...bearer("other"), "x-api-key": key.secret });
    expect(refused.status).toBe(401);
    expect(refused.json.error?.message).toContain("The value of the header 'Authorization' does not have the form");
  });

  test("a 401 names the header and the masked key, never the key", async () => {
    const { id, secret } = await createTestKey(operatorOf(app));
    await operatorOf(app).revokeKey({ keyId: id });
    const wrong = `${secret.slice(0, -1)}${secret.endsWith("0") ? "1" : "0"}`;
    for (const [sent, code] of [
      [secret, "revoked_api_key"],
      [wrong, "invalid_api_key"],
    ] as const) {
      const { status, json } = await post("/anthropic/v1/messages", { "x-api-key": sent });
      expect([status, json.error?.code]).toEqual([401, code]);
      expect(json.error?.message).toContain(`The key in the header 'x-api-key' is ${maskOfKey(sent)}.`);
      expect(JSON.stringify(json)).not.toContain(sent.slice(12, -4));
    }
  });

  test("a 401 without a key names both headers", async () => {
    const { status, json } = await post("/anthropic/v1/messages", {});
    expect([status, json.type]).toEqual([401, "error"]);
    expect(json.error?.message).toMatch(/Authorization: Bearer.*x-api-key/);
  });

  test("an unknown path and an API that is not supported have Anthropic's form", async () => {
    const unknown = await call("GET", "/anthropic/v1/nothing", { "x-api-key": key.secret });
    expect([unknown.status, unknown.json.type]).toEqual([404, "error"]);
    // The official client sends the header that tells its calls from those of OpenAI's clients.
    const files = await call("GET", "/v1/files", { ...bearer(key.secret), ...VERSION });
    expect([files.status, files.json.type]).toEqual([400, "error"]);
    const batches = await call("GET", "/anthropic/v1/messages/batches", { "x-api-key": key.secret });
    expect([batches.status, batches.json.type]).toEqual([400, "error"]);
    expect(batches.json.error?.message).toContain("does not support message batches");
  });

  test("an allowed origin may read the response", async () => {
    const headers = { "x-api-key": key.secret, origin: "https://app.example.com" };
    const answer = await fetch(`${app.url}/anthropic/v1/models`, { headers });
    expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example.com");
  });
});

describe("under /v1", () => {
  test("only the Bearer token applies if both headers are sent", async () => {
    expect((await post("/v1/messages", { ...bearer(key.secret), "x-api-key": "other" })).status).toBe(200);
    const { status, json } = await post("/v1/messages", { ...bearer("other"), "x-api-key": key.secret });
    expect([status, json.error?.code]).toEqual([401, "invalid_api_key"]);
    expect(json.error?.message).toContain("'Authorization'");
  });

  test.each(["/v1/messages", "/v1/generate"])("x-api-key alone is a 401 for %s that names the base URL", async (path) => {
    const { status, json } = await post(path, { "x-api-key": key.secret });
    expect([status, json.error?.code]).toEqual([401, "missing_api_key"]);
    expect(json.error?.message).toContain("/anthropic");
  });

  test("models have Anthropic's form only for calls with anthropic-version", async () => {
    const own = await call("GET", `/v1/models/${SMALL}`, bearer(key.secret));
    expect(own.json).toMatchObject({ object: "model", capabilities: expect.any(Array) });
    const theirs = await call("GET", `/v1/models/${SMALL}`, { ...bearer(key.secret), ...VERSION });
    const capabilities = { image_input: { supported: true }, batch: { supported: false } };
    const limits = { max_input_tokens: 8_192, max_tokens: 4_096 };
    const life = { lifecycle: "active", line: null, deprecated_at: null };
    expect(theirs.json).toMatchObject({ type: "model", id: SMALL, display_name: SMALL, ...limits, ...life, capabilities });
    const list = await call("GET", "/v1/models?limit=1", { ...bearer(key.secret), ...VERSION });
    expect(list.json).toMatchObject({ has_more: true, data: [{ type: "model" }] });
    expect(list.json).not.toHaveProperty("object");
    const missing = await call("GET", "/v1/models/nothing", { ...bearer(key.secret), ...VERSION });
    expect([missing.status, missing.json.type]).toEqual([404, "error"]);
  });
});

describe("a wrong base URL gets a 404 that names the right address", () => {
  test.each([
    ["/chat/completions", "/v1/chat/completions"],
    ["/models/abc", "/v1/models/abc"],
    ["/v1/v1/messages", "/v1/messages"],
    ["/v1/v1/chat/completions", "/v1/chat/completions"],
    ["/anthropic/v1/v1/messages", "/anthropic/v1/messages"],
    ["/anthropic/messages", "/anthropic/v1/messages"],
    ["/anthropic/v1/chat/completions", "/v1/chat/completions"],
    ["/api/v1/chat/completions", "/v1/chat/completions"],
    ["/api/v1/credits", "/v1/credits"],
  ])("%s", async (path, right) => {
    const { status, json } = await post(path, bearer(key.secret));
    expect(status).toBe(404);
    expect(json.error?.message).toContain(`Did you mean ${right}?`);
  });

  test("a path that is nothing else gets no address", async () => {
    const { status, json } = await post("/nothing", bearer(key.secret));
    expect([status, json.error?.message]).toEqual([404, "No route matches the path /nothing."]);
  });

  test("a 404 under /v1 names its path, and never a key in it", async () => {
    const unknown = await post("/v1/nothing?a=b", bearer(key.secret));
    expect(unknown.json.error?.message).toBe("No route matches the path /v1/nothing.");
    const { json } = await post(`/v1/${generateKey(0 as Lane, randomBytes).secret}`, bearer(key.secret));
    expect(json.error?.message).not.toContain("vx_live_");
  });
});

describe("an unknown model", () => {
  test.each([
    ["vx-sandbox-smal", ' Did you mean "vx-sandbox-small"?'],
    ["sandbox-large", ' Did you mean "vx-sandbox-large"'],
    ["gpt-4o", " GET /v1/models"],
    ["x".repeat(200), " GET /v1/models"],
  ])("%.20s is refused with the nearest models", async (model, hint) => {
    const generated = await call("POST", "/v1/generate", bearer(key.secret), { ...MESSAGE, model });
    const read = await call("GET", `/v1/models/${model}`, bearer(key.secret));
    for (const { status, json } of [generated, read]) {
      expect([status, json.error?.code]).toEqual([404, "model_not_found"]);
      expect(json.error?.message).toContain(`There is no model "${model}".${hint}`);
    }
  });
});
