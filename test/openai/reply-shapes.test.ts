// Replies and events have every member that the types of OpenAI's SDK require.
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionMessage,
  ChatCompletionMessageFunctionToolCall,
} from "openai/resources/chat/completions/completions";
import type { Completion, CompletionChoice, CompletionUsage } from "openai/resources/completions";
import type { CreateEmbeddingResponse, Embedding } from "openai/resources/embeddings";
import type * as sdk from "openai/resources/responses/responses";
import { expect, test } from "vitest";
import { expectShape, type Shape } from "../clients/sdk-shapes.ts";
import { useTestApp } from "../support/app.ts";
import { openAi, SMALL, said, usePaidKey } from "../support/openai.ts";

const app = useTestApp();
const key = usePaidKey(app);

const ASKED = "[[tool]] Hello";
const parameters = { type: "object", properties: { city: { type: "string" } } };

const usage: Shape<CompletionUsage> = { completion_tokens: "number", prompt_tokens: "number", total_tokens: "number" };
const call: Shape<ChatCompletionMessageFunctionToolCall> = { id: "string", type: "string", function: "object" };
const message: Shape<ChatCompletionMessage> = { role: "string", content: "null", refusal: "null" };
const choice: Shape<ChatCompletion.Choice> = { index: "number", finish_reason: "string", logprobs: "null", message: "object" };
const completion: Shape<ChatCompletion> = { id: "string", object: "string", created: "number", model: "string", choices: "list" };
const chunk: Shape<ChatCompletionChunk> = completion;
const chunkChoice: Shape<ChatCompletionChunk.Choice> = { index: "number", delta: "object", finish_reason: "null" };

const chat = {
  model: SMALL,
  messages: [said(ASKED)],
  tools: [{ type: "function" as const, function: { name: "f", parameters } }],
};

test("a chat completion", async () => {
  const reply = await openAi(app, key).chat.completions.create(chat);
  expectShape(reply, completion);
  expectShape(reply.choices[0], choice);
  expectShape(reply.choices[0]?.message, message);
  expectShape(reply.choices[0]?.message.tool_calls?.[0], call);
  expectShape(reply.usage, usage);
});

test("the chunks of a chat completion", async () => {
  const chunks = await openAi(app, key).chat.completions.create({
    ...chat,
    stream: true,
    stream_options: { include_usage: true },
  });
  let choices = 0;
  for await (const one of chunks) {
    expectShape(one, chunk);
    for (const each of one.choices) {
      choices++;
      expectShape(each, each.finish_reason ? { ...chunkChoice, finish_reason: "string" } : chunkChoice);
      for (const { index } of each.delta.tool_calls ?? []) expect(index).toBe(0);
    }
    if (one.choices.length === 0) expectShape(one.usage, usage);
  }
  expect(choices).toBeGreaterThan(1);
});

test("a text completion", async () => {
  const shape: Shape<Completion> = completion;
  const choiceShape: Shape<CompletionChoice> = { index: "number", finish_reason: "string", logprobs: "null", text: "string" };
  const reply = await openAi(app, key).completions.create({ model: SMALL, prompt: "Hello" });
  expectShape(reply, shape);
  expectShape(reply.choices[0], choiceShape);
  expectShape(reply.usage, usage);
});

test("embeddings", async () => {
  const shape: Shape<CreateEmbeddingResponse> = { object: "string", data: "list", model: "string", usage: "object" };
  const item: Shape<Embedding> = { object: "string", index: "number", embedding: "list" };
  const total: Shape<CreateEmbeddingResponse.Usage> = { prompt_tokens: "number", total_tokens: "number" };
  const reply = await openAi(app, key).embeddings.create({ model: "vx-sandbox-embed", input: "a" });
  expectShape(reply, shape);
  expectShape(reply.data[0], item);
  expectShape(reply.usage, total);
});

/** The SDK adds output_text. */
const response: Shape<Omit<sdk.Response, "output_text">> = {
  id: "string",
  access_programs: "null",
  created_at: "number",
  error: "null",
  incomplete_details: "null",
  instructions: "null",
  metadata: "object",
  model: "string",
  object: "string",
  output: "list",
  parallel_tool_calls: "boolean",
  temperature: "null",
  tool_choice: "string",
  tools: "list",
  top_p: "null",
};
const responseUsage: Shape<sdk.ResponseUsage> = {
  input_tokens: "number",
  input_tokens_details: "object",
  output_tokens: "number",
  output_tokens_details: "object",
  total_tokens: "number",
};
const inputDetails: Shape<sdk.ResponseUsage.InputTokensDetails> = { cache_write_tokens: "number", cached_tokens: "number" };
const outputDetails: Shape<sdk.ResponseUsage.OutputTokensDetails> = { reasoning_tokens: "number" };

const messageItem: Shape<sdk.ResponseOutputMessage> = {
  type: "string",
  id: "string",
  role: "string",
  status: "string",
  content: "list",
};
const textPart: Shape<sdk.ResponseOutputText> = { type: "string", text: "string", annotations: "list" };
const callItem: Shape<sdk.ResponseFunctionToolCall> = { type: "string", call_id: "string", name: "string", arguments: "string" };
const reasoningItem: Shape<sdk.ResponseReasoningItem> = { type: "string", id: "string", summary: "list" };
const ITEMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  message: messageItem,
  function_call: callItem,
  reasoning: reasoningItem,
};

function expectResponse(one: sdk.Response): void {
  expectShape(one, response);
  for (const item of one.output) {
    expectShape(item, ITEMS[item.type] ?? {});
    if (item.type === "message") for (const part of item.content) expectShape(part, textPart);
  }
  if (!one.usage) return;
  expectShape(one.usage, responseUsage);
  expectShape(one.usage.input_tokens_details, inputDetails);
  expectShape(one.usage.output_tokens_details, outputDetails);
}

const tools = [{ type: "function" as const, name: "f", parameters, strict: false }];

test.each([
  ["[[reasoning=5]] Hello", ["reasoning", "message"]],
  [ASKED, ["function_call"]],
])("a response to %s", async (input, types) => {
  const reply = await openAi(app, key).responses.create({ model: SMALL, input, tools });
  expect(reply.output.map(({ type }) => type)).toEqual(types);
  expectResponse(reply);
});

type EventShape<Type extends sdk.ResponseStreamEvent["type"]> = Shape<Extract<sdk.ResponseStreamEvent, { type: Type }>>;

const place = { type: "string", item_id: "string", output_index: "number", sequence_number: "number" } as const;
const whole = { type: "string", response: "object", sequence_number: "number" } as const;
const item = { type: "string", item: "object", output_index: "number", sequence_number: "number" } as const;
const EVENTS = {
  "response.created": whole,
  "response.in_progress": whole,
  "response.completed": whole,
  "response.output_item.added": item,
  "response.output_item.done": item,
  "response.content_part.added": { ...place, content_index: "number", part: "object" },
  "response.content_part.done": { ...place, content_index: "number", part: "object" },
  "response.output_text.delta": { ...place, content_index: "number", delta: "string", logprobs: "list" },
  "response.output_text.done": { ...place, content_index: "number", text: "string", logprobs: "list" },
  "response.function_call_arguments.delta": { ...place, delta: "string" },
  "response.function_call_arguments.done": { ...place, arguments: "string" },
  "response.reasoning_summary_part.added": { ...place, summary_index: "number", part: "object" },
  "response.reasoning_summary_part.done": { ...place, summary_index: "number", part: "object" },
  "response.reasoning_summary_text.delta": { ...place, summary_index: "number", delta: "string" },
  "response.reasoning_summary_text.done": { ...place, summary_index: "number", text: "string" },
} satisfies { readonly [Type in sdk.ResponseStreamEvent["type"]]?: EventShape<Type> };

test("the events of streamed responses", async () => {
  const seen = new Set<string>();
  for (const input of ["[[reasoning=5]] Hello", ASKED]) {
    const events = await openAi(app, key).responses.create({ model: SMALL, input, tools, stream: true });
    for await (const event of events) {
      seen.add(event.type);
      expectShape(event, (EVENTS as Record<string, Readonly<Record<string, string>>>)[event.type] ?? {});
      if ("response" in event) expectResponse(event.response);
      if ("item" in event) expectShape(event.item, ITEMS[event.item.type] ?? {});
    }
  }
  expect([...seen].sort()).toEqual(Object.keys(EVENTS).sort());
});
