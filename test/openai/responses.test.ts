import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { useTestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { PNG } from "../support/images.ts";
import { chargesOf, createPaidKey, failureOf, openAi, SMALL, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";

const app = useTestApp();
const key = usePaidKey(app);
const client = started(() => openAi(app, key));

type Body = OpenAI.Responses.ResponseCreateParamsNonStreaming;
type Input = OpenAI.Responses.ResponseInput;
type Call = OpenAI.Responses.ResponseFunctionToolCall;

const TEXT = { type: "string", minLength: 20 };
const CITY = { type: "object", properties: { city: TEXT }, required: ["city"] };
const weather = toolOf("weather");
const time = toolOf("time");

function toolOf(name: string): OpenAI.Responses.FunctionTool {
  return { type: "function", name, description: `The ${name} of a city.`, parameters: CITY, strict: false };
}

const create = (body: Partial<Body> = {}) => client.responses.create({ model: SMALL, input: "Hello", ...body });

const callsOf = ({ output }: OpenAI.Responses.Response) => output.filter((item): item is Call => item.type === "function_call");

test("a response has all fields of the SDK's type, its settings and its cost", async () => {
  const response = await create({
    instructions: "Be short.",
    max_output_tokens: 500,
    temperature: 0.5,
    metadata: { team: "a" },
    user: "ada",
    prompt_cache_key: "k",
  });
  const suffix = /^resp_(\w+)$/.exec(response.id)?.[1];
  expect(response).toMatchObject({
    object: "response",
    status: "completed",
    model: SMALL,
    error: null,
    incomplete_details: null,
    instructions: "Be short.",
    max_output_tokens: 500,
    temperature: 0.5,
    top_p: null,
    metadata: { team: "a" },
    user: "ada",
    prompt_cache_key: "k",
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
    text: { format: { type: "text" } },
    reasoning: { effort: null, summary: null },
    store: false,
    background: false,
    previous_response_id: null,
    truncation: "disabled",
    service_tier: "default",
  });
  expect(response.output).toEqual([
    {
      type: "message",
      id: `msg_${suffix}`,
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: response.output_text, annotations: [], logprobs: [] }],
    },
  ]);
  expect(response.output_text).toMatch(/^This is a reply/);
  const usage = response.usage as OpenAI.Responses.ResponseUsage & { cost_micros: number };
  expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens);
  const [charge] = await chargesOf(operatorOf(app), key);
  expect(charge).toMatchObject({
    inputTokens: BigInt(usage.input_tokens),
    outputTokens: BigInt(usage.output_tokens),
    amountMicros: -BigInt(usage.cost_micros),
  });
  expect(charge?.id.endsWith(suffix ?? "none")).toBe(true);
});

test("a response repeats known settings only", async () => {
  const junk = "x".repeat(100_000);
  const response = await create({
    tools: [Object.assign({ junk }, weather)],
    reasoning: { effort: "low", junk },
    text: { format: { type: "json_object" }, junk },
  } as Partial<Body>);
  expect(response).toMatchObject({
    tools: [weather],
    reasoning: { effort: "low", summary: null },
    text: { format: { type: "json_object" }, verbosity: "medium" },
  });
  expect(JSON.stringify(response)).not.toContain("junk");
});

test("a response at the token limit is incomplete", async () => {
  const response = await create({ max_output_tokens: 3 });
  expect(response).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
    output: [{ type: "message", status: "incomplete" }],
    output_text: "This is a",
  });
});

test("a text, a message without a type and text parts get the same response", async () => {
  const inputs: Body["input"][] = [
    "One two.",
    [{ role: "user", content: "One two." }],
    [{ type: "message", role: "user", content: ["One ", "two."].map((text) => ({ type: "input_text", text })) }],
  ];
  const texts = await Promise.all(inputs.map(async (input) => (await create({ input: input as Input })).output_text));
  expect(new Set(texts).size).toBe(1);
});

test("images are part of the prompt", async () => {
  const image_url = `data:image/png;base64,${PNG.toString("base64")}`;
  const content = [{ type: "input_image" as const, image_url, detail: "auto" as const }];
  const { usage } = await create({ input: [{ role: "user", content }] });
  const details = usage?.input_tokens_details as { image_tokens: number } | undefined;
  expect(details?.image_tokens).toBeGreaterThan(0);
});

describe("function calls", () => {
  test("are items with their own ids, and their outputs can be sent back", async () => {
    const input: Input = [{ role: "user", content: "[[tools=2]] Both." }];
    const first = await create({ input, tools: [weather, time] });
    const suffix = first.id.slice("resp_".length);
    expect(first).toMatchObject({ status: "completed", output_text: "", tools: [weather, time] });
    expect(callsOf(first)).toMatchObject([
      { id: `fc_${suffix}`, name: "weather", status: "completed" },
      { id: `fc_${suffix}_1`, name: "time", status: "completed" },
    ]);
    input.push(...(first.output as Input));
    for (const { call_id } of callsOf(first)) {
      input.push({ type: "function_call_output", call_id, output: [{ type: "input_text", text: "sunny" }] });
    }
    const last = await create({ input, tools: [weather, time] });
    expect(last.output_text).toMatch(/^This is a reply/);
  });

  test.each<[string, NonNullable<Body["tool_choice"]>, string[]]>([
    ["none", "none", []],
    ["required", "required", ["weather"]],
    ["a function", { type: "function", name: "time" }, ["time"]],
  ])("follow the tool choice: %s", async (_, tool_choice, names) => {
    const response = await create({ tools: [weather, time], tool_choice });
    expect(callsOf(response).map(({ name }) => name)).toEqual(names);
    expect(response.tool_choice).toEqual(tool_choice);
  });
});

describe("structured output", () => {
  const Report = z.object({ title: z.string(), points: z.array(z.string()), score: z.number() });

  test("of a Zod schema is parsed by the SDK, even when streamed", async () => {
    const body = { model: SMALL, input: "Report.", text: { format: zodTextFormat(Report, "report") } };
    const response = await client.responses.parse(body);
    expect(Report.parse(response.output_parsed)).toEqual(response.output_parsed);
    const streamed = await client.responses.stream(body).finalResponse();
    expect(streamed.output_parsed).toEqual(response.output_parsed);
  });

  test("without a schema is a JSON object", async () => {
    const response = await create({ text: { format: { type: "json_object" } } });
    expect(JSON.parse(response.output_text)).toBeTypeOf("object");
  });
});

describe("reasoning", () => {
  const asked: Partial<Body> = { reasoning: { effort: "low", summary: "auto" } };

  test("is an item before the message, and has an encrypted form on request", async () => {
    const [plain, encrypted] = await Promise.all([create(asked), create({ ...asked, include: ["reasoning.encrypted_content"] })]);
    expect(plain.output.map(({ type }) => type)).toEqual(["reasoning", "message"]);
    expect(plain.usage?.output_tokens_details.reasoning_tokens).toBe(16);
    expect(plain.output[0]).not.toHaveProperty("encrypted_content");
    expect(encrypted.output[0]).toMatchObject({
      id: `rs_${encrypted.id.slice("resp_".length)}`,
      summary: [{ type: "summary_text", text: expect.stringMatching(/\w/) }],
      encrypted_content: expect.stringMatching(/\w/),
    });
  });

  test("goes back with the function call that follows it", async () => {
    const tools = [weather];
    const input: Input = [{ role: "user", content: "[[tool reasoning=9]] Weather?" }];
    const first = await create({ input, tools, include: ["reasoning.encrypted_content"] });
    expect(first.output.map(({ type }) => type)).toEqual(["reasoning", "function_call"]);
    const [call] = callsOf(first) as [Call];
    input.push(...(first.output as Input), { type: "function_call_output", call_id: call.call_id, output: "sunny" });
    expect((await create({ input, tools })).output_text).toMatch(/^This is a reply/);
  });
});

test("errors have the types of the SDK", async () => {
  const unknown = await failureOf(create({ model: "none" }));
  expect(unknown).toBeInstanceOf(OpenAI.NotFoundError);
  expect(unknown).toMatchObject({ code: "model_not_found", param: "model" });
  const invalid = openAi(app, { secret: "vx_live_nobody" });
  const error = await failureOf(invalid.responses.create({ model: SMALL, input: "Hello" }));
  expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
});

test("an idempotency key gives the same response and one charge", async () => {
  const payer = await createPaidKey(operatorOf(app));
  const options = { headers: { "Idempotency-Key": "order-1" } };
  const { responses } = openAi(app, payer);
  const body: Body = { model: SMALL, input: "[[tools=2]] Both.", tools: [weather, time] };
  const first = await responses.create(body, options);
  expect(await responses.create(body, options)).toEqual(first);
  expect(await chargesOf(operatorOf(app), payer)).toHaveLength(1);
});
