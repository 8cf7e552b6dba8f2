// Messages and events have every member that the types of Anthropic's SDK require.
import type * as sdk from "@anthropic-ai/sdk/resources/messages/messages";
import { expect, test } from "vitest";
import { expectShape, type Shape } from "../clients/sdk-shapes.ts";
import { anthropic } from "../support/anthropic.ts";
import { useTestApp } from "../support/app.ts";
import { SMALL, said, usePaidKey } from "../support/openai.ts";

const app = useTestApp();
const key = usePaidKey(app);

const message: Shape<sdk.Message> = {
  id: "string",
  type: "string",
  role: "string",
  model: "string",
  content: "list",
  container: "null",
  diagnostics: "null",
  stop_details: "null",
  stop_reason: "string",
  stop_sequence: "null",
  usage: "object",
};
const usage: Shape<sdk.Usage> = {
  cache_creation: "null",
  cache_creation_input_tokens: "number",
  cache_read_input_tokens: "number",
  inference_geo: "null",
  input_tokens: "number",
  output_tokens: "number",
  output_tokens_details: "object",
  server_tool_use: "null",
  service_tier: "null",
  speed: "null",
};
const details: Shape<sdk.OutputTokensDetails> = { thinking_tokens: "number" };

/** Without citations: Anthropic's API leaves them out if there are none, and Vercel's AI SDK refuses null. */
const textBlock: Shape<Omit<sdk.TextBlock, "citations">> = { type: "string", text: "string" };
const thinkingBlock: Shape<sdk.ThinkingBlock> = { type: "string", thinking: "string", signature: "string" };
const useBlock: Shape<sdk.ToolUseBlock> = { type: "string", id: "string", name: "string", input: "object", caller: "object" };
const BLOCKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  text: textBlock,
  thinking: thinkingBlock,
  tool_use: useBlock,
};

const tools = [{ name: "f", input_schema: { type: "object" as const, properties: { city: { type: "string" } } } }];
const requestOf = (content: string) => ({ model: SMALL, max_tokens: 200, messages: [said(content)], tools });
const CALLING = "[[tool]] Hello";
const TALKING = "[[reasoning=5]] Hello";

test.each([
  [TALKING, ["thinking", "text"]],
  [CALLING, ["tool_use"]],
])("a message in reply to %s", async (content, types) => {
  const reply = await anthropic(app, key).messages.create(requestOf(content));
  expect(reply.content.map(({ type }) => type)).toEqual(types);
  expectShape(reply, message);
  expectShape(reply.usage, usage);
  expectShape(reply.usage.output_tokens_details, details);
  for (const block of reply.content) expectShape(block, BLOCKS[block.type] ?? {});
});

const start: Shape<sdk.RawMessageStartEvent> = { type: "string", message: "object" };
const blockStart: Shape<sdk.RawContentBlockStartEvent> = { type: "string", index: "number", content_block: "object" };
const blockDelta: Shape<sdk.RawContentBlockDeltaEvent> = { type: "string", index: "number", delta: "object" };
const blockStop: Shape<sdk.RawContentBlockStopEvent> = { type: "string", index: "number" };
const delta: Shape<sdk.RawMessageDeltaEvent> = { type: "string", delta: "object", usage: "object" };
const deltaMembers: Shape<sdk.RawMessageDeltaEvent.Delta> = {
  container: "null",
  stop_details: "null",
  stop_reason: "string",
  stop_sequence: "null",
};
const deltaUsage: Shape<sdk.MessageDeltaUsage> = {
  cache_creation_input_tokens: "number",
  cache_read_input_tokens: "number",
  input_tokens: "number",
  output_tokens: "number",
  output_tokens_details: "object",
  server_tool_use: "null",
};
const stop: Shape<sdk.RawMessageStopEvent> = { type: "string" };
const EVENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  message_start: start,
  content_block_start: blockStart,
  content_block_delta: blockDelta,
  content_block_stop: blockStop,
  message_delta: delta,
  message_stop: stop,
};

test("the events of streamed messages", async () => {
  const seen = new Set<string>();
  for (const content of [TALKING, CALLING]) {
    const events = await anthropic(app, key).messages.create({ ...requestOf(content), stream: true });
    for await (const event of events) {
      seen.add(event.type);
      expectShape(event, EVENTS[event.type] ?? {});
      if (event.type === "message_start") {
        expectShape(event.message, { ...message, stop_reason: "null" });
        expectShape(event.message.usage, usage);
      } else if (event.type === "content_block_start") {
        expectShape(event.content_block, BLOCKS[event.content_block.type] ?? {});
      } else if (event.type === "message_delta") {
        expectShape(event.delta, deltaMembers);
        expectShape(event.usage, deltaUsage);
      }
    }
  }
  expect([...seen].sort()).toEqual(Object.keys(EVENTS).sort());
});

test("a count of tokens", async () => {
  const shape: Shape<sdk.MessageTokensCount> = { input_tokens: "number" };
  const { max_tokens: _, ...request } = requestOf("Hello");
  expectShape(await anthropic(app, key).messages.countTokens(request), shape);
});
