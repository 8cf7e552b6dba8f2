import type OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RemoteKind } from "../../src/domain/model.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { refuse, reply } from "../support/fake-upstreams/behaviours.ts";
import { type Behaviour, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { requestProblems } from "../support/fake-upstreams/request-schemas.ts";
import { WIRES_OF_KIND } from "../support/fake-upstreams/wire.ts";
import { operatorOf } from "../support/fixtures.ts";
import { PNG } from "../support/images.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey, openAi } from "../support/openai.ts";

const KINDS = Object.keys(WIRES_OF_KIND) as RemoteKind[];
const TEXT = "Hello, world.";

let app: TestApp;
let client: OpenAI;
let upstreams: FakeUpstream[];
let models: ReturnType<typeof createModelsFile>;

/** Rejects a body that its published format does not allow. */
function strict(kind: RemoteKind): Behaviour {
  return (turn) => {
    const problems = requestProblems(kind, turn.call.body);
    return problems.length === 0
      ? reply()(turn)
      : refuse(400, {}, JSON.stringify({ error: { message: problems.join("; ") } }))(turn);
  };
}

beforeAll(async () => {
  const wires = KINDS.flatMap((kind) => WIRES_OF_KIND[kind][0] ?? []);
  upstreams = await Promise.all(wires.map((wire) => FakeUpstream.start({ wire, usual: strict(wire.kind) })));
  models = createModelsFile(
    JSON.stringify({
      models: KINDS.map((kind, i) => ({
        id: kind,
        context_window: 1_000_000,
        max_output_tokens: 10_000,
        prices: { input: 1, output: 1 },
        capabilities: ["tools", "images", "json_schema", "reasoning"],
        extra_fields: ["prompt_cache_retention"],
        upstream: { kind, base_url: upstreams[i]?.baseUrl, model: "fake-model" },
      })),
    }),
  );
  app = await startTestApp({ env: { VX_MODELS: models.path, VX_LOG_LEVEL: "warn" } });
  client = openAi(app, await createPaidKey(operatorOf(app)));
});
afterAll(async () => {
  await app.stop();
  await Promise.all(upstreams.map((upstream) => upstream.stop()));
  models.remove();
});

const PNG_URL = `data:image/png;base64,${PNG.toString("base64")}`;
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const EXTRA = { prompt_cache_retention: "24h", other_field: 1 } as const;

const MESSAGES: OpenAI.Chat.ChatCompletionMessageParam[] = [
  { role: "developer", content: "Be brief." },
  {
    role: "user",
    content: [
      { type: "text", text: "Where is this?" },
      { type: "image_url", image_url: { url: PNG_URL, detail: "low" } },
    ],
  },
  {
    role: "assistant",
    content: null,
    tool_calls: [
      { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Paris"}' } },
      { id: "call_2", type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } },
    ],
  },
  { role: "tool", tool_call_id: "call_1", content: "sunny" },
  { role: "tool", tool_call_id: "call_2", content: [{ type: "text", text: "rainy" }] },
];

const CHAT = {
  messages: MESSAGES,
  tools: [{ type: "function" as const, function: { name: "weather", description: "d", parameters: SCHEMA } }],
  tool_choice: "auto" as const,
  parallel_tool_calls: false,
  max_tokens: 2_000,
  top_p: 0.5,
};

const INPUT: OpenAI.Responses.ResponseInput = [
  {
    role: "user",
    content: [
      { type: "input_text", text: "Where is this?" },
      { type: "input_image", image_url: PNG_URL, detail: "low" },
    ],
  },
  { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Paris"}' },
  { type: "function_call", call_id: "call_2", name: "weather", arguments: '{"city":"Rome"}' },
  { type: "function_call_output", call_id: "call_1", output: "sunny" },
  { type: "function_call_output", call_id: "call_2", output: [{ type: "input_text", text: "rainy" }] },
];

const RESPONSE = {
  instructions: "Be brief.",
  input: INPUT,
  tools: [{ type: "function" as const, name: "weather", description: "d", parameters: SCHEMA, strict: false }],
  tool_choice: "auto" as const,
  parallel_tool_calls: false,
  max_output_tokens: 2_000,
  top_p: 0.5,
};

const bodyAt = (kind: RemoteKind) => upstreams[KINDS.indexOf(kind)]?.calls.at(-1)?.body ?? {};

describe.each(KINDS)("a strict %s upstream", (kind) => {
  test("accepts tools, results and images of a chat completion", async () => {
    const { choices } = await client.chat.completions.create({ model: kind, ...CHAT });
    expect(choices[0]?.message.content).toBe(TEXT);
  });

  test("accepts tools, results and images of a response", async () => {
    const response = await client.responses.create({ model: kind, ...RESPONSE });
    expect(response.output_text).toBe(TEXT);
  });
});

test.each(["high", "xhigh", "max"] as const)("the effort %s reaches an upstream as high", async (effort) => {
  await client.chat.completions.create({ model: "openai", ...CHAT, reasoning_effort: effort as "high" });
  expect(bodyAt("openai").reasoning_effort).toBe("high");
  await client.responses.create({
    model: "openai-responses",
    ...RESPONSE,
    reasoning: { effort: effort as "high" },
  });
  expect(bodyAt("openai-responses").reasoning).toMatchObject({ effort: "high" });
});

test("a chat completion reaches an upstream of the same format with its fields and the extra ones allowed", async () => {
  await client.chat.completions.create({ model: "openai", ...CHAT, ...EXTRA });
  const body = bodyAt("openai");
  expect(body).toMatchObject({
    tools: CHAT.tools,
    tool_choice: "auto",
    parallel_tool_calls: false,
    top_p: 0.5,
    prompt_cache_retention: "24h",
  });
  expect(body).not.toHaveProperty("other_field");
  const [, user, assistant, first, second] = body.messages as object[];
  expect(user).toMatchObject(MESSAGES[1] as object);
  expect(assistant).toMatchObject({
    role: "assistant",
    tool_calls: (MESSAGES[2] as typeof assistant & { tool_calls: unknown }).tool_calls,
  });
  expect([first, second]).toMatchObject([
    { role: "tool", tool_call_id: "call_1", content: "sunny" },
    { role: "tool", tool_call_id: "call_2", content: "rainy" },
  ]);
});

test("a response reaches an upstream of the same format with its items and the extra fields allowed", async () => {
  await client.responses.create({ model: "openai-responses", ...RESPONSE, ...EXTRA });
  const body = bodyAt("openai-responses");
  expect(body).toMatchObject({
    tools: RESPONSE.tools,
    parallel_tool_calls: false,
    prompt_cache_retention: "24h",
  });
  expect(body).not.toHaveProperty("other_field");
  const calls = (body.input as { type?: string; call_id?: string }[]).filter(({ call_id }) => call_id);
  expect(calls.map(({ type, call_id }) => `${type} ${call_id}`)).toEqual([
    "function_call call_1",
    "function_call call_2",
    "function_call_output call_1",
    "function_call_output call_2",
  ]);
});
