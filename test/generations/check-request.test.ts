import { expect, test } from "vitest";
import type { JsonObject } from "../../src/domain/json.ts";
import { CAPABILITIES } from "../../src/domain/model.ts";
import type { PromptMessage, PromptOptions, Tool, ToolCall } from "../../src/domain/prompt.ts";
import { checkRequest } from "../../src/generations/check-request.ts";
import type { GenerationRequest } from "../../src/generations/generation-request.ts";
import { imageOfSize, PNG } from "../support/images.ts";
import { modelOf, requestOf } from "../support/samples.ts";

/** A model that creates embeddings does nothing else. */
const ABILITIES = CAPABILITIES.filter((capability) => capability !== "embeddings");
const ABLE = modelOf({ capabilities: ABILITIES });

async function check(values: Partial<GenerationRequest>, model = ABLE): Promise<void> {
  await checkRequest(model, requestOf(values));
}

async function refusal(values: Partial<GenerationRequest>, model = ABLE): Promise<string> {
  const error = await check(values, model).catch((problem: unknown) => problem);
  expect(error).toMatchObject({ reason: "invalid_argument", fields: [{}] });
  return (error as Error).message;
}

const messagesOf = (...messages: PromptMessage[]) => ({ messages });
const call = (id: string, text = "{}"): ToolCall => ({ id, name: "weather", arguments: text });
const asked = (...toolCalls: ToolCall[]): PromptMessage => ({ role: "assistant", content: "", toolCalls });
const result = (toolCallId: string): PromptMessage => ({ role: "tool", content: "sunny", toolCallId });
const tool = (name: string, parameters?: JsonObject): Tool => ({ name, description: undefined, parameters, strict: undefined });
const image = (base64 = PNG.toString("base64")): PromptMessage["content"] => [
  { kind: "text", text: "What is this?" },
  { kind: "image", image: { kind: "data", mediaType: "image/png", data: base64 }, detail: undefined },
];
const options = (values: PromptOptions) => ({ options: values });

test("a conversation with parallel tool calls and their results in any order is accepted", async () => {
  const messages = [
    { role: "user", content: "Hello" } as const,
    asked(call("a"), call("b", '{"city": "Bern"}')),
    result("b"),
    result("a"),
    asked(call("a")),
    result("a"),
  ];
  await check({ messages }, modelOf());
});

test.each([
  ["without a call", messagesOf(result("a"))],
  ["of a call that has another id", messagesOf(asked(call("a")), result("b"))],
  ["of a call that already has one", messagesOf(asked(call("a")), result("a"), result("a"))],
  ["of a call before the last assistant message", messagesOf(asked(call("a")), { role: "assistant", content: "" }, result("a"))],
  ["without the id of a call", messagesOf(asked(call("a")), { role: "tool", content: "" })],
])("a tool result %s is refused", async (_, values) => {
  expect(await refusal(values)).toMatch(/^messages\[\d\]\.tool_call_id: must be the id of a tool call/);
});

test.each([
  ["an id twice", [call("a"), call("a")], "must not have the id of another call"],
  ["an empty id", [call("")], "must have an id of 1 to 256 characters"],
  ["a name that is too long", [{ ...call("a"), name: "n".repeat(257) }], "must have a name of 1 to 256"],
])("tool calls with %s are refused", async (_, calls, text) => {
  expect(await refusal(messagesOf(asked(...calls)))).toMatch(new RegExp(`^messages\\[0\\]\\.tool_calls\\[\\d\\]: ${text}`));
});

const levels = (count: number) => "[".repeat(count) + "]".repeat(count);
const deep = [`{"a":${levels(64)}}`, `{"\\"]":"]","b":${levels(64)}}`];

test.each(["", "{", "[]", "null", '"{}"', "{} {}", ...deep])("the arguments %s are refused", async (text) => {
  const field = "messages[0].tool_calls[1]";
  expect(await refusal(messagesOf(asked(call("a"), call("b", text))))).toMatch(
    `${field}: must have arguments that are the JSON text of an object`,
  );
});

test.each([
  ["of 64 levels", `{"a":${levels(63)}}`],
  ["with brackets in strings", `{"a\\"${levels(65)}":"\\\\","b":"\\"${levels(65)}"}`],
  ["with many lists of few levels", `{"a":[${levels(62)},${levels(62)}],"b":${levels(63)}}`],
])("arguments %s are accepted", async (_, text) => {
  await check(messagesOf(asked(call("a", text))));
});

test.each([
  ["tool calls", { role: "user", content: "", toolCalls: [call("a")] }, "tool_calls"],
  ["reasoning", { role: "system", content: "", reasoning: [] }, "reasoning"],
  ["the id of a tool call", { role: "user", content: "", toolCallId: "a" }, "tool_call_id"],
  ["an image", { role: "system", content: image() }, "parts"],
  ["an image", { role: "assistant", content: image() }, "parts"],
] as const)("%s in a message of another role is refused: %j", async (_, message, member) => {
  expect(await refusal(messagesOf(message))).toMatch(`messages[0].${member}: `);
});

test("all texts of a message have at most 400,000 characters together; a surrogate pair is one", async () => {
  const parts = (text: string) => [{ kind: "text", text } as const, { kind: "text", text: "ab" } as const];
  await check(messagesOf({ role: "user", content: "😀".repeat(400_000) }));
  await check(messagesOf({ role: "user", content: parts("😀".repeat(399_998)) }));
  expect(await refusal(messagesOf({ role: "user", content: "x".repeat(400_001) }))).toBe(
    "messages[0].content: must be at most 400000 characters",
  );
  expect(await refusal(messagesOf({ role: "user", content: parts("x".repeat(399_999)) }))).toMatch(
    "messages[0].parts: must be at most 400000 characters, all texts",
  );
  const content = "x".repeat(399_990);
  const reasoning = [{ text: "1234", signature: "56", encrypted: "78901" }];
  expect(await refusal(messagesOf({ role: "assistant", content, reasoning }))).toMatch("messages[0].content");
  expect(await refusal(messagesOf({ role: "assistant", content, toolCalls: [call("a", '{"abc":1}')] }))).toMatch(
    "messages[0].content",
  );
  expect(await refusal(messagesOf(asked(call("a")), { ...result("a"), content: "x".repeat(400_001) }))).toMatch(
    "messages[1].content",
  );
});

test("a request has at most 100 images", async () => {
  const part = (image() as Extract<PromptMessage["content"], readonly unknown[]>)[1] as never;
  const user = (images: number): PromptMessage => ({ role: "user", content: Array(images).fill(part) });
  await check(messagesOf(user(60), user(40)));
  expect(await refusal(messagesOf(user(60), user(41)))).toMatch("messages[1].parts: has image 101");
});

test("an image with bad base64 is refused with the name of its part", async () => {
  const base64 = `${imageOfSize(300).toString("base64").slice(0, 300)}!${"A".repeat(99)}`;
  expect(await refusal(messagesOf({ role: "user", content: image(base64) }))).toMatch("messages[0].parts[1]: must be base64");
});

test("errors name the fields of the caller's format", async () => {
  const conversation = { messages: [asked(call("a")), result("b")], fields: ["input[0]", "input[4]"] };
  expect(await refusal({ ...conversation, format: "openai-responses" })).toMatch(/^input\[4\]: must be the id/);
  const long = messagesOf({ role: "user", content: "x".repeat(400_001) });
  expect(await refusal({ ...long, format: "openai-chat" })).toMatch(/^messages\[0\]\.content: /);
  const schema = options({ responseFormat: { kind: "json" } });
  expect(await refusal({ ...schema, format: "openai-responses" }, modelOf())).toMatch(/^text\.format: /);
  const thinking = options({ reasoningEffort: "low" });
  expect(await refusal({ ...thinking, format: "anthropic-messages" }, modelOf())).toMatch(/^thinking: /);
});

test.each([
  ["native", "tools[1].name", "response_format.name"],
  ["openai-chat", "tools[1].function.name", "response_format.json_schema.name"],
  ["openai-responses", "tools[1].name", "text.format.name"],
  ["anthropic-messages", "tools[1].name", "output_config.format.name"],
] as const)("errors about names have the field of the format %s", async (format, toolName, schemaName) => {
  const tools = (...names: string[]) => ({ format, ...options({ tools: names.map((name) => tool(name)) }) });
  expect(await refusal(tools("a", "b c"))).toMatch(`${toolName}: must be 1 to 128 letters`);
  expect(await refusal(tools("a", "a"))).toMatch(`${toolName}: must differ`);
  const responseFormat = { kind: "json_schema", name: "b c", schema: {}, strict: undefined } as const;
  expect(await refusal({ format, ...options({ responseFormat }) })).toMatch(`${schemaName}: must be 1 to 64`);
});

test("formats other than the native one have as many messages as the model allows", async () => {
  const model = modelOf({ maxMessages: 2 });
  const messages = Array<PromptMessage>(3).fill({ role: "user", content: "Hello" });
  await check({ messages }, model);
  await check({ messages: messages.slice(1), format: "openai-chat" }, model);
  expect(await refusal({ messages, format: "openai-chat" }, model)).toMatch("messages: must have at most 2");
  expect(await refusal({ messages, format: "openai-responses" }, model)).toMatch("input: must have at most 2");
});

test.each([
  ["tools", options({ tools: [tool("a")] }), "tools"],
  ["json_schema", options({ responseFormat: { kind: "json" } }), "response_format"],
  ["reasoning", options({ reasoningEffort: "minimal" }), "reasoning_effort"],
  ["images", messagesOf({ role: "user", content: image() }), "messages"],
] as const)("a model without the capability %s refuses what needs it", async (capability, values, field) => {
  const without = modelOf({ capabilities: ABILITIES.filter((other) => other !== capability) });
  expect(await refusal(values, without)).toBe(`${field}: requires the capability "${capability}", which "m" does not have`);
  await check(values, modelOf({ capabilities: [capability] }));
});

test("no reasoning, no tools and text parts need no capability", async () => {
  const messages: PromptMessage[] = [{ role: "user", content: [{ kind: "text", text: "Hello" }] }];
  await check({ messages, ...options({ reasoningEffort: "none", tools: [] }) }, modelOf());
});

test.each([
  ["a tool that is not there", [tool("a")], { kind: "tool", name: "b" }, "tool_choice: must be the name"],
  ["a tool without tools", undefined, { kind: "tool", name: "b" }, "tool_choice: must be the name"],
  ["any tool without tools", [], { kind: "required" }, "tool_choice: requires tools"],
] as const)("a tool_choice that requires %s is refused", async (_, tools, toolChoice, text) => {
  expect(await refusal(options({ ...(tools ? { tools } : {}), toolChoice }))).toMatch(text);
});

test.each([
  ["two tools of one name", [tool("a"), tool("a")], "tools[1].name: must differ"],
  ["a name with a space", [tool("a b")], 'tools[0].name: must be 1 to 128 letters, digits, "_" or "-"'],
  ["257 tools", Array.from({ length: 257 }, (_, i) => tool(`t${i}`)), "tools: must have at most 256 items"],
])("%s are refused", async (_, tools, text) => {
  expect(await refusal(options({ tools }))).toMatch(text);
});

test("schemas are data: recursion and 10,000 properties are accepted, 1 MiB of JSON is the limit", async () => {
  const recursive = { $ref: "#", properties: { next: { $ref: "#/properties/next" } } };
  const properties = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`p${i}`, { type: "null" }]));
  await check(options({ tools: [tool("a", recursive), tool("b", { type: "object", properties })] }));
  const large = { description: "x".repeat(600_000) };
  await check(options({ tools: [tool("a", large)] }));
  expect(await refusal(options({ tools: [tool("a", large), tool("b", large)] }))).toMatch(
    "tools: must be at most 1048576 characters of JSON",
  );
  const schema = { kind: "json_schema", name: "a", strict: undefined } as const;
  expect(await refusal(options({ responseFormat: { ...schema, schema: { enum: ["x".repeat(1_048_576)] } } }))).toMatch(
    "response_format: must be at most 1048576 characters of JSON",
  );
  expect(await refusal(options({ responseFormat: { ...schema, name: "a b", schema: {} } }))).toMatch(
    "response_format.name: must be 1 to 64 letters",
  );
});

test("a suffix has at most 400,000 characters", async () => {
  expect(await refusal(options({ suffix: "x".repeat(400_001) }))).toMatch("suffix: must be at most 400000");
});
