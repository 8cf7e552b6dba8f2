import { describe, expect, test } from "vitest";
import { anthropic, refusalOf } from "../support/anthropic.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { chargesOf, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";

const MODEL = "vx-sandbox-large";

const app = useTestApp();
const key = usePaidKey(app);
const client = started(() => anthropic(app, key));

const HELLO = [{ role: "user" as const, content: "Hello" }];

/** Sends a body that the client's types may not allow. */
const send = (body: object) => client.post("/v1/messages", { body: { model: MODEL, max_tokens: 10, messages: HELLO, ...body } });

const user = (...content: object[]) => ({ messages: [{ role: "user", content }] });
const image = (source: object) => user({ type: "image", source });
const result = { type: "tool_result", tool_use_id: "toolu_1", content: "x" };
const use = { type: "tool_use", id: "1", name: "a", input: {} };
const cache_control = { type: "x".repeat(1_000) };
const long = { model: "vx-sandbox-small", system: "x", messages: [{ role: "user", content: "word ".repeat(9_000) }] };

// test/anthropic/messages-request-fields.test.ts has the fields and kinds that are not supported.
// biome-ignore format: a row a line
const refused: [what: string, body: object, field: string][] = [
  ["no max_tokens", { max_tokens: undefined }, "max_tokens"],
  ["an empty list of blocks", user(), "messages[0].content"],
  ["a number as content", { messages: [{ role: "user", content: 7 }] }, "messages[0].content"],
  ["a role of another API", { messages: [{ role: "tool", content: "x" }] }, "messages[0].role"],
  ["a result without its call", user(result), "messages[0]"],
  ["a result after a text", user({ type: "text", text: "x" }, result), "messages[0].content[1]"],
  ["a tool call of the user", user(use), "messages[0].content[0].type"],
  ["an input that is not an object", { messages: [...HELLO, { role: "assistant", content: [{ ...use, input: "x" }] }] }, "messages[1].content[0].input"],
  ["an image that lies about its type", image({ type: "base64", media_type: "image/png", data: "/9j/4AAQSkZJRgAB" }), "messages[0].content[0].source.data"],
  ["an image with a private address", image({ type: "url", url: "http://169.254.169.254/x.png" }), "messages[0].content[0].source.url"],
  ["a long cache control of a block", user({ type: "text", text: "x", cache_control }), "messages[0].content[0].cache_control"],
  ["a long cache control of a tool", { tools: [{ name: "a", input_schema: {}, cache_control }] }, "tools[0].cache_control"],
  ["a conversation above the context window", long, "messages: have at least"],
  ["an image of the system", { messages: [...HELLO, { role: "system", content: [{ type: "image" }] }] }, "messages[1].content[0].type"],
  ["a tool without a schema", { tools: [{ name: "a" }] }, "tools[0].input_schema"],
  ["an unknown tool as the choice", { tool_choice: { type: "tool", name: "nobody" } }, "tool_choice"],
  ["a choice without its name", { tool_choice: { type: "tool" } }, "tool_choice.name"],
  ["a user with control characters", { metadata: { user_id: "a\nb" } }, "metadata.user_id"],
  ["servers of the model context protocol", { mcp_servers: [{ name: "a" }] }, "mcp_servers"],
  ["thinking without a budget", { thinking: { type: "enabled" } }, "thinking.budget_tokens"],
  ["a temperature above 1", { temperature: 1.5 }, "temperature"],
];

test.each(refused)("%s is refused with the name of the field", async (_, body, field) => {
  const error = await refusalOf(send(body));
  expect(error.status).toBe(400);
  expect(error.error).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
  expect(error.message).toContain(field);
});

test("a stored thread is refused with the code that tool runners handle", async () => {
  const error = await refusalOf(send({ thread: { type: "create" } }));
  expect(error.status).toBe(400);
  expect(error.error).toMatchObject({ error: { details: { error_code: "thread_unsupported_request" } } });
});

test("a refused call is not charged", async () => {
  expect(await chargesOf(operatorOf(app), key)).toEqual([]);
});

describe("errors have Anthropic's form", () => {
  test("without a balance", async () => {
    const broke = anthropic(app, await createTestKey(operatorOf(app)));
    const error = await refusalOf(broke.messages.create({ model: MODEL, max_tokens: 10, messages: HELLO }));
    expect(error.status).toBe(402);
    expect(error.error).toMatchObject({ type: "error", error: { type: "billing_error" } });
  });

  test("with an unknown model", async () => {
    const error = await refusalOf(client.messages.create({ model: "nobody", max_tokens: 10, messages: HELLO }));
    expect(error.status).toBe(404);
    expect(error.error).toMatchObject({ error: { type: "not_found_error" } });
  });

  test("when the upstream fails before and during a stream", async () => {
    const failing = (content: string) =>
      client.messages.stream({ model: MODEL, max_tokens: 100, messages: [{ role: "user", content }] }).finalMessage();
    expect((await refusalOf(failing("[[fail_after=0]]"))).status).toBe(502);
    const later = await refusalOf(failing("[[fail_after=8]]"));
    expect(later.error).toMatchObject({ type: "error", error: { type: "api_error" } });
  });
});
