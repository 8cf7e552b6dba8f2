import OpenAI from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { useTestApp } from "../support/app.ts";
import { PNG } from "../support/images.ts";
import { failureOf, openAi, SMALL, said, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";

const app = useTestApp();
const key = usePaidKey(app);
const client = started(() => openAi(app, key));

type Tool = OpenAI.Chat.ChatCompletionFunctionTool;
type Messages = OpenAI.Chat.ChatCompletionMessageParam[];
type Chunk = OpenAI.Chat.ChatCompletionChunk;

const TEXT = { type: "string", minLength: 20 };
const CITY = { type: "object", properties: { city: TEXT, country: TEXT }, required: ["city", "country"] };
const PNG_URL = `data:image/png;base64,${PNG.toString("base64")}`;
const weather = toolOf("weather");
const time = toolOf("time");

function toolOf(name: string): Tool {
  return { type: "function", function: { name, description: `The ${name} of a city.`, parameters: CITY } };
}

const create = (body: Partial<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming>) =>
  client.chat.completions.create({ model: SMALL, messages: [said("Hello")], ...body });

async function chunksOf(body: Omit<OpenAI.Chat.ChatCompletionCreateParamsStreaming, "model" | "stream">): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of await client.chat.completions.create({ model: SMALL, ...body, stream: true })) chunks.push(chunk);
  return chunks;
}

describe("a reply with tool calls", () => {
  test("has no content, one call for each tool, and the finish reason tool_calls", async () => {
    const reply = await create({ messages: [said("[[tools=2]] Both.")], tools: [weather, time] });
    const [choice] = reply.choices;
    expect(choice).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        role: "assistant",
        content: null,
        refusal: null,
        tool_calls: ["weather", "time"].map((name) => ({ type: "function", function: { name } })),
      },
    });
    const calls = functionCallsOf(choice?.message);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
    for (const call of calls) expect(JSON.parse(call.function.arguments)).toHaveProperty("city");
  });

  test.each<[string, Partial<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming>, string[]]>([
    ["none", { tool_choice: "none" }, []],
    ["auto", { tool_choice: "auto" }, []],
    ["required", { tool_choice: "required" }, ["weather"]],
    ["a function", { tool_choice: { type: "function", function: { name: "time" } } }, ["time"]],
  ])("follows the tool choice: %s", async (_, body, names) => {
    const { choices } = await create({ tools: [weather, time], ...body });
    expect(functionCallsOf(choices[0]?.message).map((call) => call.function.name)).toEqual(names);
  });

  test("has one call if parallel calls are not allowed", async () => {
    const messages = [said("[[tools=2]] Both.")];
    const { choices } = await create({ messages, tools: [weather, time], parallel_tool_calls: false });
    expect(functionCallsOf(choices[0]?.message)).toHaveLength(1);
  });

  test("goes back with the results of its calls", async () => {
    const messages: Messages = [said("[[tools=2]] Both.")];
    const first = await create({ messages, tools: [weather, time] });
    const message = first.choices[0]?.message as OpenAI.Chat.ChatCompletionMessage;
    messages.push(message);
    for (const { id } of functionCallsOf(message)) {
      messages.push({ role: "tool", tool_call_id: id, content: [{ type: "text", text: "sunny" }] });
    }
    for (const tools of [[weather, time], undefined]) {
      const { choices } = await create({ messages, ...(tools && { tools }) });
      expect(choices[0]).toMatchObject({ finish_reason: "stop", message: { content: expect.any(String) } });
    }
  });

  test("is streamed in pieces, and only the first piece of a call has its id, type and name", async () => {
    const body = { model: SMALL, messages: [said("[[tools=2]] Both.")], tools: [weather, time] };
    const chunks = await chunksOf(body);
    expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("tool_calls");
    const pieces = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    const whole = await create(body);
    for (const [index, call] of functionCallsOf(whole.choices[0]?.message).entries()) {
      const [head, ...others] = pieces.filter((piece) => piece.index === index);
      expect(head).toMatchObject({ id: call.id, type: "function", function: { name: call.function.name } });
      expect(others.length).toBeGreaterThan(0);
      for (const other of others) {
        expect(Object.keys(other)).toEqual(["index", "function"]);
        expect(Object.keys(other.function ?? {})).toEqual(["arguments"]);
      }
      const text = [head, ...others].map((piece) => piece?.function?.arguments).join("");
      expect(text).toBe(call.function.arguments);
    }
  });

  test("is assembled by the stream helper of the SDK", async () => {
    const body = { model: SMALL, messages: [said("[[tools=2]] Both.")], tools: [weather, time] };
    const stream = client.chat.completions.stream(body);
    const names: string[] = [];
    stream.on("tool_calls.function.arguments.done", ({ name }) => names.push(name));
    const final = await stream.finalChatCompletion();
    expect(names).toEqual(["weather", "time"]);
    expect(final.choices[0]?.finish_reason).toBe("tool_calls");
    expect(final.choices[0]?.message.tool_calls).toHaveLength(2);
  });
});

test("the tool runner of the SDK calls functions until the reply has text", async () => {
  const asked: unknown[] = [];
  const runner = client.chat.completions.runTools({
    model: SMALL,
    messages: [said("[[tool]] Weather?")],
    tools: [
      zodFunction({
        name: "weather",
        parameters: z.object({ city: z.string(), days: z.number().int() }),
        function: (parameters) => {
          asked.push(parameters);
          return "sunny";
        },
      }),
    ],
  });
  expect(await runner.finalContent()).toMatch(/^This is a reply/);
  expect(asked).toEqual([{ city: expect.any(String), days: expect.any(Number) }]);
});

describe("structured output", () => {
  const Report = z.object({ title: z.string(), points: z.array(z.string()), score: z.number() });

  test("of a Zod schema is parsed by the SDK", async () => {
    const body = { model: SMALL, messages: [said("Report.")], response_format: zodResponseFormat(Report, "report") };
    const { choices } = await client.chat.completions.parse(body);
    expect(Report.parse(choices[0]?.message.parsed)).toEqual(choices[0]?.message.parsed);
    const streamed = await client.chat.completions.stream(body).finalChatCompletion();
    expect(streamed.choices[0]?.message.parsed).toEqual(choices[0]?.message.parsed);
  });

  test("without a schema is a JSON object", async () => {
    const { choices } = await create({ response_format: { type: "json_object" } });
    expect(JSON.parse(choices[0]?.message.content ?? "")).toBeTypeOf("object");
  });
});

describe("reasoning", () => {
  type Reasoned = { reasoning_content?: string | null };

  test("is beside the content, in its own count, and accepted in the next request", async () => {
    const reply = await create({ reasoning_effort: "low" });
    const message = reply.choices[0]?.message as OpenAI.Chat.ChatCompletionMessage & Reasoned;
    expect(message.reasoning_content).toMatch(/\w/);
    expect(message.content).toMatch(/^This is a reply/);
    expect(reply.usage?.completion_tokens_details?.reasoning_tokens).toBe(16);
    const next = await create({ messages: [said("Hello"), message, said("Go on.")] });
    expect(next.choices[0]?.finish_reason).toBe("stop");
  });

  test("is streamed before the content", async () => {
    const whole = (await create({ reasoning_effort: "low" })).choices[0]?.message as Reasoned;
    const chunks = await chunksOf({ messages: [said("Hello")], reasoning_effort: "low" });
    const deltas = chunks.map(({ choices }) => (choices[0]?.delta ?? {}) as Reasoned & { content?: string });
    const texts = deltas.map(({ reasoning_content }) => reasoning_content ?? "");
    expect(texts.join("")).toBe(whole.reasoning_content);
    const lastReasoning = deltas.findLastIndex(({ reasoning_content }) => reasoning_content);
    expect(deltas.findIndex(({ content }) => content)).toBeGreaterThan(lastReasoning);
  });
});

test("images count as input tokens, and cached tokens are part of the prompt", async () => {
  const text = { type: "text", text: "[[cached=7 cache_write=5]] What is this?" } as const;
  const image = { type: "image_url", image_url: { url: PNG_URL, detail: "low" } } as const;
  const usages = await Promise.all(
    [[text], [text, image]].map(async (content) => (await create({ messages: [{ role: "user", content }] })).usage),
  );
  const [plain, seen] = usages as [OpenAI.CompletionUsage, OpenAI.CompletionUsage];
  const details = seen.prompt_tokens_details as { image_tokens?: number };
  expect(details).toMatchObject({ cached_tokens: 7, cache_write_tokens: 5 });
  expect(details.image_tokens).toBeGreaterThan(0);
  expect(seen.prompt_tokens).toBeGreaterThan(plain.prompt_tokens);
  expect(seen.total_tokens).toBe(seen.prompt_tokens + seen.completion_tokens);
});

test("a refusal takes the place of missing content", async () => {
  const messages: Messages = [said("Hello"), { role: "assistant", refusal: "I cannot." }, said("Why?")];
  const parts: Messages = [
    said("Hello"),
    { role: "assistant", content: [{ type: "refusal", refusal: "I cannot." }] },
    said("Why?"),
  ];
  const replies = await Promise.all([messages, parts].map((one) => create({ messages: one })));
  expect(replies[0]?.choices).toEqual(replies[1]?.choices);
});

test("a schema of 10,000 properties is refused by name", async () => {
  const properties = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`p${i}`, { type: "string" }]));
  const parameters = { type: "object", properties, description: "x".repeat(1_000_000) };
  const tools: Tool[] = [{ type: "function", function: { name: "f", parameters } }];
  const error = await failureOf(create({ tools }));
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect(error.param).toBe("tools");
});

function functionCallsOf(message: OpenAI.Chat.ChatCompletionMessage | undefined) {
  return (message?.tool_calls ?? []).filter((call) => call.type === "function");
}
