import { expect, test } from "vitest";
import type { RemoteSettings } from "../../src/domain/model.ts";
import type { Prompt } from "../../src/domain/prompt.ts";
import { createOpenaiDialect } from "../../src/upstreams/openai/dialect.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { promptOf } from "../support/samples.ts";
import { started } from "../support/started.ts";
import { AGENT, CONVERSATION, sentTo } from "./requests-support.ts";
import { openRemote, PROMPT } from "./support.ts";

const openaiDialect = createOpenaiDialect({ baseUrl: "http://127.0.0.1" });

const fake = started(() => FakeUpstream.start());
const sent = (prompt: Prompt, options: Partial<RemoteSettings> = {}, env: Record<string, string> = {}) =>
  sentTo(fake, prompt, options, env);

test("a prompt is sent with all its fields, streaming and usage", async () => {
  const { body } = await sent(CONVERSATION);
  expect(body).toEqual({
    model: "fake-model",
    messages: CONVERSATION.messages,
    max_tokens: 7,
    temperature: 1.5,
    stop: ["END", "\n."],
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("tools, calls, results, images and options are sent", async () => {
  const { body } = await sent(AGENT);
  expect(body).toEqual({
    model: "fake-model",
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "Look." },
          { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        ],
      },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: '{"at":1}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "nothing" },
      { role: "assistant", content: "Nothing." },
      { role: "user", content: "Again." },
    ],
    max_tokens: 100,
    top_p: 0.5,
    seed: 0,
    presence_penalty: 1,
    frequency_penalty: -1,
    reasoning_effort: "low",
    tools: [
      { type: "function", function: { name: "look", description: "Looks.", parameters: { type: "object" }, strict: true } },
      { type: "function", function: { name: "wait" } },
    ],
    tool_choice: { type: "function", function: { name: "look" } },
    parallel_tool_calls: false,
    response_format: { type: "json_schema", json_schema: { name: "s", schema: { type: "object" } } },
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("top_k and earlier reasoning are sent if the model lists them", async () => {
  const { body } = openaiDialect;
  const traits = { capabilities: [], extraFields: ["top_k", "reasoning_content"] };
  const sentBody = body(promptOf({ messages: AGENT.messages, options: { topK: 5 }, traits }), "m");
  expect(sentBody).toMatchObject({ top_k: 5, messages: [{}, { reasoning_content: "Hm.", tool_calls: [{}] }, {}, {}, {}] });
});

test("a message with only reasoning is not sent, unless the model lists it", async () => {
  const { body } = openaiDialect;
  const reasoning = [{ text: "Hm.", signature: undefined, encrypted: undefined }];
  const messages = [{ role: "assistant", content: "", reasoning } as const, ...PROMPT.messages];
  const traits = { capabilities: [], extraFields: ["reasoning_content"] };
  expect(body(promptOf({ messages }), "m")).toMatchObject({ messages: [{ role: "user" }] });
  expect(body(promptOf({ messages, traits }), "m")).toMatchObject({
    messages: [{ content: "", reasoning_content: "Hm." }, { role: "user" }],
  });
});

test("parts that are all texts are sent as one text, with every role", async () => {
  const content = [
    { kind: "text", text: "One." },
    { kind: "text", text: " Two." },
  ] as const;
  const { body } = await sent(
    promptOf({
      messages: [
        { role: "system", content },
        { role: "user", content },
        { role: "assistant", content, toolCalls: [{ id: "a", name: "f", arguments: "{}" }] },
        { role: "tool", toolCallId: "a", content },
      ],
    }),
  );
  const contents = (body.messages as { content: unknown }[]).map((message) => message.content);
  expect(contents).toEqual(Array(4).fill("One. Two."));
});

test("without tools, fields about tools are not sent", async () => {
  const { body } = await sent({ ...PROMPT, options: { toolChoice: { kind: "none" }, parallelToolCalls: true } });
  expect(Object.keys(body)).not.toContain("tool_choice");
  expect(Object.keys(body)).not.toContain("parallel_tool_calls");
});

test.each([
  [{ kind: "json" } as const, { type: "json_object" }],
  [
    { kind: "json_schema", name: "n", schema: {}, strict: false } as const,
    { type: "json_schema", json_schema: { name: "n", schema: {}, strict: false } },
  ],
])("the format of the reply is sent", async (responseFormat, expected) => {
  expect((await sent({ ...PROMPT, options: { responseFormat } })).body.response_format).toEqual(expected);
});

test("unset fields of a prompt are not sent", async () => {
  const { body } = await sent(PROMPT);
  expect(Object.keys(body).sort()).toEqual(["max_tokens", "messages", "model", "stream", "stream_options"]);
});

test("the key is sent if it is configured", async () => {
  expect((await sent(PROMPT)).headers.authorization).toBeUndefined();
  const { headers } = await sent(PROMPT, { apiKeyEnv: "KEY" }, { KEY: " the-key\n" });
  expect(headers).toMatchObject({ authorization: "Bearer the-key", "accept-encoding": "identity" });
});

test("a missing or malformed key is rejected when the upstream opens, without quoting it", () => {
  const open = (KEY: string) => openRemote(fake.settings({ apiKeyEnv: "KEY" }), { KEY });
  for (const key of ["", "  ", "two words", "a\nb", "ключ"]) {
    expect(() => open(key)).toThrow(/^the environment variable KEY (is not set|contains characters)/);
  }
});

test("a base URL may end with a slash and have a query", async () => {
  await sent(PROMPT, { baseUrl: `${fake.baseUrl}/` });
  await sent(PROMPT, { baseUrl: `${fake.baseUrl}?api-version=1` });
});

test("OpenAI and Azure get max_completion_tokens", () => {
  const names = ["https://api.openai.com/v1", "https://x.openai.azure.com/openai/v1", "https://notopenai.com/v1"].map((baseUrl) =>
    Object.keys(createOpenaiDialect({ baseUrl }).body(PROMPT, "m")).filter((name) => name.startsWith("max")),
  );
  expect(names).toEqual([["max_completion_tokens"], ["max_completion_tokens"], ["max_tokens"]]);
});
