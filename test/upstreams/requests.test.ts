import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Prompt } from "../../src/domain/prompt.ts";
import type { RemoteSettings } from "../../src/upstreams/http/http-upstream.ts";
import { openaiDialect } from "../../src/upstreams/openai.ts";
import { type FakeCall, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire } from "../support/fake-upstreams/wire.ts";
import { NEVER, openRemote, PROMPT, read } from "./support.ts";

const CONVERSATION: Prompt = {
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: "One." },
    { role: "user", content: "Two." },
    { role: "system", content: "Be kind." },
    { role: "user", content: "Three." },
    { role: "assistant", content: "Yes?" },
    { role: "user", content: "Four." },
  ],
  maxTokens: 7,
  temperature: 1.5,
  stop: ["END", "\n"],
};

let fake: FakeUpstream;

/** What arrives at the upstream. */
async function sent(prompt: Prompt, options: Partial<RemoteSettings> = {}, env = {}) {
  const upstream = openRemote(fake.settings(options), env);
  expect((await read(upstream.generate(prompt, NEVER))).failure).toBeUndefined();
  await upstream.close();
  return fake.calls.at(-1) as FakeCall;
}

describe("openai", () => {
  beforeAll(async () => {
    fake = await FakeUpstream.start();
  });
  afterAll(() => fake.stop());

  test("a prompt is sent with all that it says, streamed and with usage", async () => {
    const { body } = await sent(CONVERSATION);
    expect(body).toEqual({
      model: "fake-model",
      messages: CONVERSATION.messages,
      max_tokens: 7,
      temperature: 1.5,
      stop: ["END", "\n"],
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  test("what a prompt does not say is not sent", async () => {
    const { body } = await sent(PROMPT);
    expect(Object.keys(body).sort()).toEqual(["max_tokens", "messages", "model", "stream", "stream_options"]);
  });

  test("the key is sent if there is one", async () => {
    expect((await sent(PROMPT)).headers.authorization).toBeUndefined();
    const { headers } = await sent(PROMPT, { apiKeyEnv: "KEY" }, { KEY: " the-key\n" });
    expect(headers).toMatchObject({ authorization: "Bearer the-key", "accept-encoding": "identity" });
  });

  test("a key that is missing or cannot be one is said when the upstream is opened, without the key", () => {
    const open = (KEY: string) => openRemote(fake.settings({ apiKeyEnv: "KEY" }), { KEY });
    for (const key of ["", "  ", "two words", "a\nb", "ключ"]) {
      expect(() => open(key)).toThrow(/^KEY (is not set|holds characters)/);
    }
  });

  test("a base URL may end with a slash and have a query", async () => {
    await sent(PROMPT, { baseUrl: `${fake.baseUrl}/` });
    await sent(PROMPT, { baseUrl: `${fake.baseUrl}?api-version=1` });
  });

  test("the newer name of max_tokens goes to those who want it", () => {
    const names = [
      "https://api.openai.com/v1",
      "https://x.openai.azure.com/openai/v1",
      "https://notopenai.com/v1",
    ].map((baseUrl) =>
      Object.keys(openaiDialect(baseUrl).body(PROMPT, "m")).filter((name) => name.startsWith("max")),
    );
    expect(names).toEqual([["max_completion_tokens"], ["max_completion_tokens"], ["max_tokens"]]);
  });
});

describe("anthropic", () => {
  beforeAll(async () => {
    fake = await FakeUpstream.start({ wire: anthropicWire });
  });
  afterAll(() => fake.stop());

  test("a prompt is sent with system apart, turns that alternate and a temperature in its range", async () => {
    const { body } = await sent(CONVERSATION);
    const text = (content: string) => ({ type: "text", text: content });
    expect(body).toEqual({
      model: "fake-model",
      messages: [
        { role: "user", content: [text("One."), text("Two."), text("Three.")] },
        { role: "assistant", content: "Yes?" },
        { role: "user", content: "Four." },
      ],
      max_tokens: 7,
      system: [text("Be brief."), text("Be kind.")],
      temperature: 1,
      stop_sequences: ["END", "\n"],
      stream: true,
    });
  });

  test("what a prompt does not say is not sent", async () => {
    const { body } = await sent(PROMPT);
    expect(Object.keys(body).sort()).toEqual(["max_tokens", "messages", "model", "stream"]);
    expect((await sent({ ...PROMPT, temperature: 0 })).body.temperature).toBe(0);
  });

  test("key and version are sent in its headers", async () => {
    const { headers } = await sent(PROMPT, { apiKeyEnv: "KEY" }, { KEY: "the-key" });
    expect(headers).toMatchObject({ "x-api-key": "the-key", "anthropic-version": "2023-06-01" });
    expect(headers.authorization).toBeUndefined();
  });

  test("a base URL may leave the version out, as its own clients do", async () => {
    await sent(PROMPT, { baseUrl: fake.baseUrl.replace("/v1", "") });
  });
});
