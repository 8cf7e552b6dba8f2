import { describe, expect, test } from "vitest";
import { anthropic, refusalOf } from "../../support/anthropic.ts";
import { useTestApp } from "../../support/app.ts";
import { createTestKey, operatorOf } from "../../support/fixtures.ts";
import { chargesOf, usePaidKey } from "../../support/openai.ts";
import { started } from "../../support/started.ts";

const MODEL = "vx-sandbox-large";

const app = useTestApp();
const key = usePaidKey(app);
const client = started(() => anthropic(app, key));

const HELLO = [{ role: "user" as const, content: "Hello" }];

/** Sends a body that the client's types may not allow. */
const send = (body: object) => client.post("/v1/messages", { body: { model: MODEL, max_tokens: 10, messages: HELLO, ...body } });

const refused: [what: string, body: object, field: string][] = [
  ["no max_tokens", { max_tokens: undefined }, "max_tokens"],
  ["an unknown block", { messages: [{ role: "user", content: [{ type: "document" }] }] }, "messages[0].content[0].type"],
  ["an empty list of blocks", { messages: [{ role: "user", content: [] }] }, "messages[0].content"],
  ["a number as content", { messages: [{ role: "user", content: 7 }] }, "messages[0].content"],
  ["a role of another API", { messages: [{ role: "tool", content: "x" }] }, "messages[0].role"],
  [
    "a result without its call",
    {
      messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "x" }] }],
    },
    "messages[0]",
  ],
  [
    "a result after a text",
    {
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "x" },
            { type: "tool_result", tool_use_id: "toolu_1", content: "x" },
          ],
        },
      ],
    },
    "messages[0].content[1]",
  ],
  [
    "a tool call of the user",
    { messages: [{ role: "user", content: [{ type: "tool_use", id: "1", name: "a", input: {} }] }] },
    "messages[0].content[0].type",
  ],
  [
    "an input that is not an object",
    {
      messages: [...HELLO, { role: "assistant", content: [{ type: "tool_use", id: "1", name: "a", input: "x" }] }],
    },
    "messages[1].content[0].input",
  ],
  [
    "an image that lies about its type",
    {
      messages: [
        {
          role: "user",
          content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "/9j/4AAQSkZJRgAB" } }],
        },
      ],
    },
    "messages[0].content[0].source.data",
  ],
  [
    "an image with a private address",
    {
      messages: [
        {
          role: "user",
          content: [{ type: "image", source: { type: "url", url: "http://169.254.169.254/x.png" } }],
        },
      ],
    },
    "messages[0].content[0].source.url",
  ],
  [
    "a long cache control of a block",
    {
      messages: [{ role: "user", content: [{ type: "text", text: "x", cache_control: { type: "x".repeat(1_000) } }] }],
    },
    "messages[0].content[0].cache_control",
  ],
  [
    "a long cache control of a tool",
    { tools: [{ name: "a", input_schema: {}, cache_control: { type: "x".repeat(1_000) } }] },
    "tools[0].cache_control",
  ],
  [
    "a conversation above the context window",
    {
      model: "vx-sandbox-small",
      system: "x",
      messages: [{ role: "user", content: "word ".repeat(9_000) }],
    },
    "messages: have at least",
  ],
  [
    "a hosted tool that must be called",
    { tools: [{ type: "web_search_20250305", name: "web_search" }], tool_choice: { type: "any" } },
    "tools[0].type",
  ],
  [
    "an image of the system",
    { messages: [...HELLO, { role: "system", content: [{ type: "image" }] }] },
    "messages[1].content[0].type",
  ],
  ["a tool without a schema", { tools: [{ name: "a" }] }, "tools[0].input_schema"],
  ["an unknown tool as the choice", { tool_choice: { type: "tool", name: "nobody" } }, "tool_choice"],
  ["a choice without its name", { tool_choice: { type: "tool" } }, "tool_choice.name"],
  ["a user with control characters", { metadata: { user_id: "a\nb" } }, "metadata.user_id"],
  ["a container", { container: "c" }, "container"],
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

  test("with x-api-key in place of a Bearer token, and the message says what to send", async () => {
    const response = await fetch(`${app.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": key.secret, "anthropic-version": "2023-06-01" },
    });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({
      type: "error",
      error: { type: "authentication_error", message: expect.stringContaining("Bearer") },
    });
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
