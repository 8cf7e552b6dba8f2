// The examples of docs/models.md and of the README, with a fake in place of each provider.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire, openaiWire } from "../support/fake-upstreams/wire.ts";
import type { TestKey } from "../support/fixtures.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { chargesOf, createPaidKey, openAi, said } from "../support/openai.ts";

const KEY = "sk-key-of-the-provider";
const openai = { wire: openaiWire, headers: { authorization: `Bearer ${KEY}` } };
const anthropic = { wire: anthropicWire, headers: { "x-api-key": KEY, "anthropic-version": "2023-06-01" } };

const fromModels = (title: string) => sections.get(title)?.match(/```yaml\n([\s\S]*?)```/)?.[1] ?? "";
const sections = new Map(
  readFileSync("docs/models.md", "utf8")
    .split("\n### ")
    .map((section) => [section.split("\n")[0], section]),
);
/** The lines are indented, as code, and between the lines of a here-document. */
const inReadme = (/<<'END'\n([\s\S]*?)\n {4}END\n/.exec(readFileSync("README.md", "utf8"))?.[1] ?? "").replace(/^ {4}/gm, "");

/** What each provider documents: the address of its API and the header with the key. */
const EXAMPLES = [
  {
    name: "OpenAI",
    text: fromModels("OpenAI"),
    address: "https://api.openai.com/v1/chat/completions",
    ...openai,
  },
  {
    name: "Anthropic",
    text: fromModels("Anthropic"),
    address: "https://api.anthropic.com/v1/messages",
    ...anthropic,
  },
  {
    name: "Ollama",
    text: fromModels("Ollama"),
    address: "http://127.0.0.1:11434/v1/chat/completions",
    ...openai,
    headers: {},
  },
  { name: "vLLM", text: fromModels("vLLM"), address: "http://127.0.0.1:8000/v1/chat/completions", ...openai },
  {
    name: "OpenRouter",
    text: fromModels("OpenRouter"),
    address: "https://openrouter.ai/api/v1/chat/completions",
    ...openai,
  },
  { name: "the README", text: inReadme, address: "https://api.openai.com/v1/chat/completions", ...openai },
];

describe.each(EXAMPLES)("the example for $name", ({ text, address, wire, headers }) => {
  const { origin, pathname } = new URL(address);
  const [, id = "", model = ""] = /- id: (\S+)[\s\S]*\bmodel: ([^\s}]+)/.exec(text) ?? [];
  const [variable] = /(?<=api_key_env: )\w+/.exec(text) ?? [];
  let upstream: FakeUpstream;
  let models: ReturnType<typeof createModelsFile>;
  let app: TestApp;
  let key: TestKey;

  beforeAll(async () => {
    upstream = await FakeUpstream.start({ wire: { ...wire, path: pathname } });
    models = createModelsFile(text.replace(origin, new URL(upstream.baseUrl).origin));
    if (variable !== undefined) vi.stubEnv(variable, KEY);
    app = await startTestApp({ env: { VX_MODELS: models.path } });
    key = await createPaidKey(operatorOf(app));
  });
  afterAll(async () => {
    await app.stop();
    await upstream.stop();
    models.remove();
    vi.unstubAllEnvs();
  });

  test("needs only a key, calls the provider's address, and charges the call", async () => {
    const client = openAi(app, key);
    const { choices } = await client.chat.completions.create({ model: id, messages: [said("What is a ledger?")] });
    expect(choices[0]?.message.content).toBe("Hello, world.");
    expect(upstream.calls).toEqual([expect.objectContaining({ model, headers: expect.objectContaining(headers) })]);
    const [charge] = await chargesOf(operatorOf(app), key);
    expect(charge?.amountMicros).toBeLessThan(0n);
  });
});
