import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { chargesOf, createPaidKey, openAi, SMALL, said, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";

const app = useTestApp();
const key = usePaidKey(app);
const client = started(() => openAi(app, key));

type Body = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming;

const ask = (body: Partial<Body> = {}) => client.chat.completions.create({ model: SMALL, messages: [said("Hello")], ...body });

test("a reply has all fields of the SDK's type, and its cost", async () => {
  const reply = await ask();
  expect(reply).toMatchObject({ object: "chat.completion", model: SMALL });
  expect([reply.id, reply._request_id]).toEqual([expect.stringMatching(/^gen_/), expect.stringMatching(/^req_/)]);
  expect(Math.abs(reply.created - Date.now() / 1000)).toBeLessThan(600);
  expect(reply.choices).toEqual([
    {
      index: 0,
      message: {
        role: "assistant",
        content: expect.stringMatching(/^This is a reply of the sandbox\./),
        refusal: null,
        reasoning_content: null,
      },
      logprobs: null,
      finish_reason: "stop",
    },
  ]);
  const { prompt_tokens, completion_tokens, total_tokens } = reply.usage as OpenAI.CompletionUsage;
  expect(total_tokens).toBe(prompt_tokens + completion_tokens);
  const [charge] = await chargesOf(operatorOf(app), key);
  expect(charge).toMatchObject({ inputTokens: BigInt(prompt_tokens), outputTokens: BigInt(completion_tokens), model: SMALL });
  const told = reply as unknown as { usage: { cost_micros: number }; balance_micros: number };
  expect(-Number(charge?.amountMicros)).toBe(told.usage.cost_micros);
  expect(Number(charge?.balanceAfterMicros)).toBe(told.balance_micros);
});

test("a string and text parts with the same content get the same reply", async () => {
  const parts = ["One ", "two."].map((text) => ({ type: "text" as const, text }));
  const texts = await Promise.all(["One two.", parts].map((content) => ask({ messages: [{ role: "user", content }] })));
  expect(texts[0]?.choices[0]?.message.content).toBe(texts[1]?.choices[0]?.message.content);
});

test("the roles developer and system are equivalent", async () => {
  const replies = await Promise.all(
    (["developer", "system"] as const).map((role) => ask({ messages: [{ role, content: "Be short." }, said("Hello")] })),
  );
  expect(replies[0]?.choices[0]?.message.content).toBe(replies[1]?.choices[0]?.message.content);
});

test.each([
  ["stop", "reply", "This is a "],
  ["a stop of several", ["sandbox", "reply"], "This is a "],
  ["no stop", null, expect.stringMatching(/^This is a reply of the sandbox\./)],
  ["an empty list of stops", [], expect.stringMatching(/^This is a reply of the sandbox\./)],
])("%s", async (_name, stop, content) => {
  expect((await ask({ stop })).choices[0]).toMatchObject({ message: { content }, finish_reason: "stop" });
});

test.each([
  [{ max_tokens: 3 }],
  [{ max_completion_tokens: 3 }],
  [{ max_tokens: 3, max_completion_tokens: 3 }],
  [{ max_tokens: null, max_completion_tokens: 3 }],
])("%j ends the reply after three tokens", async (limits) => {
  const reply = await ask(limits);
  expect(reply.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "This is a" } });
  expect(reply.usage?.completion_tokens).toBe(3);
});

test("a reply can be sent back as part of the conversation", async () => {
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
    { role: "system", content: "Be short.", name: "rules" },
    { role: "user", content: "Hello", name: "ada" },
  ];
  const first = await ask({ messages });
  messages.push(first.choices[0]?.message as OpenAI.Chat.ChatCompletionMessage);
  messages.push({ role: "assistant", content: "", tool_calls: [], refusal: null, audio: null });
  messages.push({ role: "assistant", content: "And?", tool_calls: null } as never);
  messages.push(said("Go on."));
  expect((await ask({ messages })).choices).toHaveLength(1);
});

describe("an option without effect is accepted:", () => {
  test.each<Partial<Body>>([
    { user: "u-1", metadata: { team: "a" }, safety_identifier: "x", prompt_cache_key: "y" },
    { store: false, service_tier: "auto", parallel_tool_calls: true, seed: 7 },
    { service_tier: "default", verbosity: "medium", prediction: { type: "content", content: "x" } },
    { n: 1, top_p: 0.5, prompt_cache_key: "y", seed: -7, reasoning_effort: "none" },
    { user: "u".repeat(129), safety_identifier: "s".repeat(129) },
    { n: 1, top_p: 1, frequency_penalty: 0, presence_penalty: 0, logit_bias: {} },
    { logprobs: false, top_logprobs: 0, modalities: ["text"], response_format: { type: "text" } },
    { tools: [], tool_choice: "auto", functions: [], function_call: "none" },
    { n: null, top_p: null, stop: null, temperature: null, logprobs: null, reasoning_effort: null },
    { store: null, service_tier: null, metadata: null, stream_options: null, audio: null },
    { stream_options: { include_usage: true } },
    { later_field: { deep: [1, 2, { three: 4 }] } } as never,
  ])("%j", async (fields) => {
    expect((await ask(fields)).choices[0]?.message.content).toMatch(/^This is a reply/);
  });
});

describe("an idempotency key", () => {
  test("gives the same reply and one charge", async () => {
    const payer = await createPaidKey(operatorOf(app));
    const options = { headers: { "Idempotency-Key": "order-1" } };
    const body = { model: SMALL, messages: [said("Once.")] };
    const { completions } = openAi(app, payer).chat;
    const first = await completions.create(body, options);
    const { data, response } = await completions.create(body, options).withResponse();
    expect(data).toEqual(first);
    expect(response.headers.get("idempotency-replayed")).toBe("true");
    expect(await chargesOf(operatorOf(app), payer)).toHaveLength(1);
  });

  test("of a running call is retried by the SDK", async () => {
    const payer = await createPaidKey(operatorOf(app));
    const { completions } = openAi(app, payer, { maxRetries: 5 }).chat;
    const body = { model: SMALL, messages: [said("[[tokens=40 delay_ms=50]] Twice at once.")] };
    const options = { headers: { "Idempotency-Key": "order-3" } };
    const [one, other] = await Promise.all([completions.create(body, options), completions.create(body, options)]);
    expect(other).toEqual(one);
    expect(await chargesOf(operatorOf(app), payer)).toHaveLength(1);
  });
});
