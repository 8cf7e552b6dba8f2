import { expect, test } from "vitest";
import type { Capability, RemoteSettings } from "../../src/domain/model.ts";
import type { Prompt } from "../../src/domain/prompt.ts";
import { openaiResponsesDialect } from "../../src/upstreams/openai-responses/dialect.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { openaiResponsesWire } from "../support/fake-upstreams/wire.ts";
import { promptOf } from "../support/samples.ts";
import { started } from "../support/started.ts";
import { AGENT, CONVERSATION, sentTo } from "./requests-support.ts";
import { PROMPT, replyOf } from "./support.ts";

const fake = started(() => FakeUpstream.start({ wire: openaiResponsesWire }));
const sent = (prompt: Prompt, options: Partial<RemoteSettings> = {}, env: Record<string, string> = {}) =>
  sentTo(fake, prompt, options, env);

test("a prompt is sent with all its fields", async () => {
  const { body } = await sent({ ...CONVERSATION, stop: [] });
  expect(body).toEqual({
    model: "fake-model",
    input: CONVERSATION.messages,
    max_output_tokens: 16,
    temperature: 1.5,
    store: false,
    stream: true,
  });
});

test("tools, calls, results, images and options are sent", async () => {
  const { presencePenalty, frequencyPenalty, seed, ...options } = AGENT.options;
  const { body } = await sent({ ...AGENT, options });
  expect(body).toEqual({
    model: "fake-model",
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "Look." },
          { type: "input_image", image_url: "https://example.com/a.png", detail: "low" },
          { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "auto" },
        ],
      },
      { type: "function_call", call_id: "c1", name: "look", arguments: '{"at":1}' },
      { type: "function_call_output", call_id: "c1", output: "nothing" },
      { role: "assistant", content: "Nothing." },
      { role: "user", content: "Again." },
    ],
    max_output_tokens: 100,
    top_p: 0.5,
    reasoning: { effort: "low" },
    tools: [
      { type: "function", name: "look", description: "Looks.", parameters: { type: "object" }, strict: true },
      { type: "function", name: "wait", parameters: { type: "object", properties: {} }, strict: false },
    ],
    tool_choice: { type: "function", name: "look" },
    parallel_tool_calls: false,
    text: { format: { type: "json_schema", name: "s", schema: { type: "object" } } },
    store: false,
    stream: true,
  });
});

test("encrypted reasoning is requested of models that reason, and sent back under its id", async () => {
  const reasoning = [
    { text: "Hm.", signature: undefined, encrypted: "rs_1:e1" },
    { text: "", signature: undefined, encrypted: "e2" },
    { text: "of another server", signature: "s", encrypted: undefined },
  ];
  const { body } = await sent(
    promptOf({
      messages: [{ role: "user", content: "Go." }, { role: "assistant", content: "", reasoning }, ...PROMPT.messages],
      traits: { capabilities: ["reasoning"], extraFields: [] },
    }),
  );
  expect(body).toMatchObject({
    include: ["reasoning.encrypted_content"],
    input: [
      { role: "user", content: "Go." },
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "e1" },
      { type: "reasoning", summary: [], encrypted_content: "e2" },
      { role: "user" },
    ],
  });
});

test("a message with only the reasoning of another server is not sent", async () => {
  const reasoning = [{ text: "Hm.", signature: undefined, encrypted: undefined }];
  const { body } = await sent(promptOf({ messages: [{ role: "assistant", content: "", reasoning }, ...PROMPT.messages] }));
  expect(body.input).toMatchObject([{ role: "user" }]);
});

test("a summary of the reasoning is requested of models that reason", async () => {
  const asked = (capabilities: readonly Capability[]) =>
    sent(promptOf({ options: { reasoningSummary: "auto" }, traits: { capabilities, extraFields: [] } }));
  expect((await asked(["reasoning"])).body.reasoning).toEqual({ summary: "auto" });
  expect((await asked([])).body).not.toHaveProperty("reasoning");
});

test("a limit that the API refuses is raised, and the reply is cut at the limit of the caller", async () => {
  expect((await sent(promptOf({ maxTokens: 15 }))).body.max_output_tokens).toBe(16);
  expect((await sent(promptOf({ maxTokens: 17 }))).body.max_output_tokens).toBe(17);
  const delta = { type: "response.output_text.delta", delta: "eight ch" };
  const { output, done } = replyOf(openaiResponsesDialect, Array(16).fill(delta), 2);
  expect(output.text.length).toBeLessThanOrEqual(24);
  expect(done).toMatchObject({ finishReason: "length", usage: undefined });
});

test("the key is sent", async () => {
  const { headers } = await sent(PROMPT, { apiKeyEnv: "KEY" }, { KEY: "the-key" });
  expect(headers.authorization).toBe("Bearer the-key");
});
