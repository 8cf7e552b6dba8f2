import type OpenAI from "openai";
import { expect, test, vi } from "vitest";
import { useTestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { chargesOf, createPaidKey, failureOf, openAi, SMALL, said, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";

const app = useTestApp();
const key = usePaidKey(app);
const client = started(() => openAi(app, key));

type Chunk = OpenAI.Chat.ChatCompletionChunk;
type Body = OpenAI.Chat.ChatCompletionCreateParamsStreaming;

const hello = { model: SMALL, messages: [said("Hello")] };
const SLOW = { model: SMALL, messages: [said("[[tokens=4000 delay_ms=20]] Hello")], max_tokens: 4_000 };

async function chunksOf(body: Partial<Body> = {}, options = {}): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of await client.chat.completions.create({ ...hello, ...body, stream: true }, options))
    chunks.push(chunk);
  return chunks;
}

const textOf = (chunks: readonly Chunk[]) => chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");

test("the chunks contain the complete reply in the expected order", async () => {
  const whole = await client.chat.completions.create(hello);
  const chunks = await chunksOf();
  expect(textOf(chunks)).toBe(whole.choices[0]?.message.content);
  const [first, ...others] = chunks;
  expect(first?.choices[0]).toMatchObject({ index: 0, delta: { role: "assistant" }, finish_reason: null });
  const last = others.pop();
  expect(last?.choices[0]).toMatchObject({ index: 0, finish_reason: "stop" });
  expect(last?.choices[0]?.delta.content ?? "").toBe("");
  expect(others.length).toBeGreaterThan(1);
  for (const { choices, usage } of others) {
    expect({ usage, choice: choices[0] }).toMatchObject({ usage: null, choice: { finish_reason: null } });
    expect(choices[0]?.delta.role ?? null).toBeNull();
    expect(typeof choices[0]?.delta.content).toBe("string");
  }
  const heads = chunks.map(({ id, object, created, model }) => ({ id, object, created, model }));
  const { id, created } = first as Chunk;
  expect(id).toMatch(/^gen_/);
  expect(heads).toEqual(Array(heads.length).fill({ id, object: "chat.completion.chunk", created, model: SMALL }));
});

test("usage is sent only on request, after the reply, in a chunk without choices", async () => {
  for (const without of [await chunksOf(), await chunksOf({ stream_options: { include_usage: false } })]) {
    expect(without.every(({ usage, choices }) => usage === null && choices.length === 1)).toBe(true);
  }
  const chunks = await chunksOf({ stream_options: { include_usage: true } });
  const last = chunks.pop();
  expect(chunks.every(({ usage, choices }) => usage === null && choices.length === 1)).toBe(true);
  expect(last?.choices).toEqual([]);
  const [charge] = await chargesOf(operatorOf(app), key);
  expect(last?.usage).toMatchObject({
    prompt_tokens: Number(charge?.inputTokens),
    completion_tokens: Number(charge?.outputTokens),
    total_tokens: Number(charge?.inputTokens) + Number(charge?.outputTokens),
    cost_micros: -Number(charge?.amountMicros),
  });
});

test("a reply at the token limit ends with length", async () => {
  const chunks = await chunksOf({ max_completion_tokens: 3 });
  expect(textOf(chunks)).toBe("This is a");
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("length");
});

test("an empty reply has a role and a finish reason", async () => {
  const chunks = await chunksOf({ stop: "This" });
  expect(textOf(chunks)).toBe("");
  expect(chunks).toHaveLength(1);
  expect(chunks[0]?.choices[0]).toMatchObject({ delta: { role: "assistant" }, finish_reason: "stop" });
});

test("the stream helper of the SDK assembles the complete reply", async () => {
  const whole = await client.chat.completions.create(hello);
  const deltas: string[] = [];
  const stream = client.chat.completions
    .stream({ ...hello, stream_options: { include_usage: true } })
    .on("content", (delta) => deltas.push(delta));
  const final = await stream.finalChatCompletion();
  expect(final).toMatchObject({ object: "chat.completion", model: SMALL });
  expect(final.choices[0]).toMatchObject({
    index: 0,
    finish_reason: "stop",
    message: { role: "assistant", content: whole.choices[0]?.message.content },
  });
  expect(deltas.join("")).toBe(whole.choices[0]?.message.content);
  expect(final.usage).toMatchObject({ total_tokens: whole.usage?.total_tokens });
  expect((await stream.totalUsage()).total_tokens).toBe(whole.usage?.total_tokens);
});

test("a failure during the stream is an APIError with its reason after the delivered chunks", async () => {
  const messages = [said("[[tokens=50 fail_after=20]] Hello")];
  const pieces: string[] = [];
  const stream = await client.chat.completions.create({ ...hello, messages, stream: true });
  const error = await failureOf(
    (async () => {
      for await (const { choices } of stream) pieces.push(choices[0]?.delta.content ?? "");
    })(),
  );
  expect(error).toMatchObject({ code: "upstream_error", type: "api_error" });
  expect(pieces.join("")).toMatch(/^This is a reply/);
});

test("a disconnect through the stream's controller is charged for the produced output", async () => {
  const payer = await createPaidKey(operatorOf(app));
  const stream = await openAi(app, payer).chat.completions.create({ ...SLOW, stream: true });
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  stream.controller.abort();
  while (!(await iterator.next()).done);
  await vi.waitFor(async () => {
    const charges = await chargesOf(operatorOf(app), payer);
    expect(charges).toHaveLength(1);
    expect(charges[0]?.outputTokens).toBeGreaterThan(0n);
    expect(charges[0]?.outputTokens).toBeLessThan(4_000n);
  });
});

test("an idempotency key gives the same stream and one charge", async () => {
  const payer = await createPaidKey(operatorOf(app));
  const { completions } = openAi(app, payer).chat;
  const once = async () => {
    const headers = { "Idempotency-Key": "stream-1" };
    const stream = await completions.create({ ...hello, stream: true }, { headers });
    const chunks: Chunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return { id: chunks[0]?.id, text: textOf(chunks), end: chunks.at(-1)?.choices[0]?.finish_reason };
  };
  expect(await once()).toEqual(await once());
  expect(await chargesOf(operatorOf(app), payer)).toHaveLength(1);
});
