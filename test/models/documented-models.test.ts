// The examples of docs/models.md and of the README, with a fake in place of each provider.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
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
  { name: "OpenAI", text: fromModels("OpenAI"), address: "https://api.openai.com/v1/chat/completions", ...openai },
  { name: "Anthropic", text: fromModels("Anthropic"), address: "https://api.anthropic.com/v1/messages", ...anthropic },
  { name: "Ollama", text: fromModels("Ollama"), address: "http://127.0.0.1:11434/v1/chat/completions", ...openai, headers: {} },
  { name: "vLLM", text: fromModels("vLLM"), address: "http://127.0.0.1:8000/v1/chat/completions", ...openai },
  { name: "OpenRouter", text: fromModels("OpenRouter"), address: "https://openrouter.ai/api/v1/chat/completions", ...openai },
  { name: "the README", text: inReadme, address: "https://api.openai.com/v1/chat/completions", ...openai },
].map((example) => {
  const [, id = "", model = ""] = /- id: (\S+)[\s\S]*\bmodel: ([^\s}]+)/.exec(example.text) ?? [];
  const [variable] = /(?<=api_key_env: )\w+/.exec(example.text) ?? [];
  // Two examples may have the same model.
  return { ...example, id: `${example.name}-${id}`.replace(" ", "-"), model, variable };
});

let upstreams: FakeUpstream[];
let models: ReturnType<typeof createModelsFile>;
let app: TestApp;
let key: TestKey;

/** One server has the models of all examples. */
beforeAll(async () => {
  upstreams = await Promise.all(
    EXAMPLES.map(({ wire, address }) => FakeUpstream.start({ wire: { ...wire, path: new URL(address).pathname } })),
  );
  const lists = EXAMPLES.map(({ text, address, id, variable }, i) => {
    if (variable !== undefined) vi.stubEnv(variable, KEY);
    expect(text).toMatch(/^models:\n {2}- id: /);
    const origin = new URL(upstreams[i]?.baseUrl ?? "").origin;
    return text.replace(/^models:\n {2}- id: \S+/, `  - id: ${id}`).replace(new URL(address).origin, origin);
  });
  models = createModelsFile(`models:\n${lists.map((list) => `${list.trimEnd()}\n`).join("")}`);
  app = await startTestApp({ env: { VX_MODELS: models.path } });
  key = await createPaidKey(operatorOf(app));
});
afterAll(async () => {
  await app.stop();
  for (const upstream of upstreams) await upstream.stop();
  models.remove();
  vi.unstubAllEnvs();
});

test.each(EXAMPLES.map((example, i) => ({ ...example, i })))(
  "the example for $name needs only a key, calls the provider's address, and charges the call",
  async ({ id, model, headers, i }) => {
    const client = openAi(app, key);
    const { choices } = await client.chat.completions.create({ model: id, messages: [said("What is a ledger?")] });
    expect(choices[0]?.message.content).toBe("Hello, world.");
    expect(upstreams[i]?.calls).toEqual([expect.objectContaining({ model, headers: expect.objectContaining(headers) })]);
    const charges = await chargesOf(operatorOf(app), key);
    expect(charges).toHaveLength(i + 1);
    expect(charges[0]?.amountMicros).toBeLessThan(0n);
  },
);
