import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { openAi, SMALL, usePaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";

const app = useTestApp();
const key = usePaidKey(app);
const client = started(() => openAi(app, key));

type Event = OpenAI.Responses.ResponseStreamEvent;
type Body = Partial<OpenAI.Responses.ResponseCreateParamsStreaming>;

const weather: OpenAI.Responses.FunctionTool = {
  type: "function",
  name: "weather",
  parameters: { type: "object", properties: { city: { type: "string", minLength: 40 } }, required: ["city"] },
  strict: false,
};
const CALLS = "response.function_call_arguments";
const SUMMARY = "response.reasoning_summary";

async function eventsOf(body: Body = {}): Promise<Event[]> {
  const events: Event[] = [];
  const stream = await client.responses.create({ model: SMALL, input: "Hello", ...body, stream: true });
  for await (const event of stream) events.push(event);
  return events;
}

/** The types, with equal neighbours once. */
const typesOf = (events: readonly { type: string }[]) =>
  events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);

const around = (...types: string[]) => ["response.created", "response.in_progress", ...types, "response.completed"];
const item = (...types: string[]) => ["response.output_item.added", ...types, "response.output_item.done"];
const MESSAGE = item(
  "response.content_part.added",
  "response.output_text.delta",
  "response.output_text.done",
  "response.content_part.done",
);
const CALL = item(`${CALLS}.delta`, `${CALLS}.done`);
const REASONING = item(`${SUMMARY}_part.added`, `${SUMMARY}_text.delta`, `${SUMMARY}_text.done`, `${SUMMARY}_part.done`);

test.each<[string, Body, string[]]>([
  ["a text", {}, MESSAGE],
  ["reasoning and a text", { reasoning: { effort: "low" } }, [...REASONING, ...MESSAGE]],
  ["two calls", { input: "[[tools=2]] Both.", tools: [weather] }, [...CALL, ...CALL]],
  [
    "reasoning, a text and a call",
    { input: "[[reasoning=9 tokens=9 tool]] All.", tools: [weather] },
    [...REASONING, ...MESSAGE, ...CALL],
  ],
])("%s: events in the order of OpenAI's API, numbered from 0", async (_, body, types) => {
  const events = await eventsOf(body);
  expect(typesOf(events)).toEqual(around(...types));
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()]);
  const [created] = events;
  expect(created).toMatchObject({ response: { status: "in_progress", output: [], usage: null } });
});

test("the pieces of each item add up to its final form and to the unary response", async () => {
  const body = { input: "[[reasoning=9 tokens=9 tool]] All.", tools: [weather] };
  const whole = await client.responses.create({ model: SMALL, ...body });
  const events = await eventsOf(body);
  const last = events.at(-1) as OpenAI.Responses.ResponseCompletedEvent;
  const withoutIds = (output: readonly object[]) => JSON.stringify(output).replaceAll(/(rs|msg|fc)_\w+/g, "");
  expect(withoutIds(last.response.output)).toBe(withoutIds(whole.output));
  const done = events.filter((event) => event.type === "response.output_item.done");
  expect(done.map((event) => event.item)).toEqual(last.response.output);
  const joined = (type: string) =>
    events.flatMap((event) => (event.type === type && "delta" in event ? [event.delta] : [])).join("");
  expect(joined("response.output_text.delta")).toBe(whole.output_text);
  const call = whole.output.find((one) => one.type === "function_call");
  expect(joined(`${CALLS}.delta`)).toBe(call?.arguments);
  expect(last.response.usage?.total_tokens).toBe(whole.usage?.total_tokens);
});

test("a stream at the token limit ends with response.incomplete", async () => {
  const last = (await eventsOf({ max_output_tokens: 3 })).at(-1);
  expect(last).toMatchObject({
    type: "response.incomplete",
    response: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
  });
});

test("an empty response has an empty message", async () => {
  const events = await eventsOf({ input: "[[tokens=0]] Nothing." });
  expect(typesOf(events)).toEqual(around(...MESSAGE.filter((type) => !type.endsWith(".delta"))));
});

test("the stream helper of the SDK assembles the response", async () => {
  const stream = client.responses.stream({ model: SMALL, input: "[[reasoning=9 tokens=9 tools=2]] All.", tools: [weather] });
  const deltas: string[] = [];
  stream.on("response.output_text.delta", ({ delta }) => deltas.push(delta));
  const final = await stream.finalResponse();
  expect(final.output_text).toBe(deltas.join(""));
  expect(final.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call", "function_call"]);
});

test("a failure during the stream is response.failed with its reason, then an error", async () => {
  const body = { model: SMALL, input: "[[tokens=50 fail_after=20]] Hello", stream: true } as const;
  const events: Event[] = [];
  const reading = (async () => {
    for await (const event of await client.responses.create(body)) events.push(event);
  })();
  await expect(reading).rejects.toMatchObject({ code: "upstream_error" });
  const failed = events.filter(({ type }) => type === "response.failed");
  expect(failed).toMatchObject([{ response: { status: "failed", error: { code: "upstream_error" } } }]);
});

const post = (body: object) =>
  fetch(`${app.url}/v1/responses`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json" },
    body: JSON.stringify({ input: "Hello", stream: true, ...body }),
  });

describe("over a raw connection", () => {
  test("each event has its type as name, and nothing follows the last one", async () => {
    const response = await post({ model: SMALL });
    const blocks = (await response.text()).trimEnd().split("\n\n");
    for (const block of blocks) {
      const [, name, json] = /^event: (.+)\ndata: (.+)$/.exec(block) ?? [];
      expect((JSON.parse(json ?? "") as { type: string }).type).toBe(name);
    }
    expect(blocks.at(-1)).toContain("response.completed");
    expect(blocks.join("")).not.toContain("[DONE]");
  });

  test("an error before the first event is an ordinary response", async () => {
    const response = await post({ model: "none" });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: "model_not_found" } });
  });
});
