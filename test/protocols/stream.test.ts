import { describe, expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { hangUpAfter, replyWhen, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import type { TestKey } from "../support/fixtures.ts";
import { COST_MICROS, HELD_MICROS, REQUEST, SANDBOX_MODEL, useMetered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";
import { allOf, type Call, callEach, commonHeaders, useClients, type Wire, wires } from "./wires.ts";

const metered = useMetered();
const clients = useClients(wires, () => metered.app.url);
const { streamGenerate } = GenerateService.method;

type Event = {
  readonly delta?: { readonly content: string };
  readonly done?: { readonly id: string; readonly balance_micros: string };
};

const callOf = ({ secret }: TestKey, headers = {}) => ({
  method: streamGenerate,
  request: REQUEST,
  headers: { ...bearer(secret), ...headers },
});
const textOf = (messages: readonly unknown[]) => (messages as Event[]).map(({ delta }) => delta?.content ?? "").join("");

describe.each(wires)("$name", ({ name }) => {
  const call = (call: Call) => clients.of(name).call(call);

  test("the pieces arrive as they are produced, and the ledger entry exists before the last event", async () => {
    const key = await metered.payer(1_000n);
    const rest = Promise.withResolvers<void>();
    const during = Promise.withResolvers<object>();
    const charged = Promise.withResolvers<object>();
    metered.upstream.next(replyWhen(rest.promise, 2));
    let text = "";
    const answer = await call({
      ...callOf(key, { "x-request-id": "my-stream-1" }),
      onMessage: (message) => {
        const { delta, done } = message as Event;
        text += delta?.content ?? "";
        if (text === "Hello, ") {
          during.resolve(metered.account(key));
          rest.resolve(during.promise as never);
        }
        if (done) charged.resolve(metered.rows(key));
      },
    });
    expect(answer.error).toBeUndefined();
    expect(await during.promise).toEqual({ balance: 1_000, held: Number(HELD_MICROS) });
    expect(text).toBe("Hello, world.");
    const done = answer.messages.flatMap((message) => (message as Event).done ?? []);
    expect(done).toEqual([
      {
        id: expect.stringMatching(/^gen_/),
        model: "fake",
        finish_reason: "stop",
        usage: expect.objectContaining({
          input_tokens: "11",
          output_tokens: "4",
          cost_micros: String(COST_MICROS),
          cost: "$0.000019",
        }),
        balance_micros: "981",
      },
    ]);
    expect(await charged.promise).toMatchObject([{ id: done[0]?.id.replace("gen_", "led_"), amount: 19 }]);
    expect(commonHeaders(answer)).toMatchObject({
      "x-request-id": "my-stream-1",
      "cache-control": "no-store",
      "ratelimit-policy": '"rpm";q=1000000;w=60',
      "x-ratelimit-remaining-requests": "999999",
    });
  });

  test("an error after some pieces follows them, with its details, and a retry gets the same pieces", async () => {
    const key = await metered.payer(1_000n);
    metered.upstream.next(hangUpAfter(2));
    const retried = callOf(key, { "idempotency-key": "broken" });
    const cut = await call(retried);
    expect(textOf(cut.messages)).toBe("Hello, ");
    expect(cut.error).toEqual({
      code: "UNAVAILABLE",
      text: expect.stringMatching(/upstream/i),
      details: [{ "@type": "google.rpc.ErrorInfo", reason: "UPSTREAM_ERROR", domain: "vx", metadata: {} }],
    });
    const again = await call(retried);
    expect(again.messages).toEqual(cut.messages);
    expect(again.error).toMatchObject({
      code: "ABORTED",
      text: expect.stringContaining("the upstream failed"),
      details: [{ reason: "GENERATION_INTERRUPTED", metadata: { first_reason: "upstream_error" } }],
    });
    expect(await metered.rows(key)).toMatchObject([{ output: 3, amount: 15 }]);
  });
});

/** Encodings make no difference to a disconnect. */
test.each(wires.filter(({ name }) => !/gzip|JSON/.test(name)))(
  "$name: a disconnect cancels the upstream and is charged for the delivered pieces",
  async ({ name }) => {
    const key = await metered.payer(1_000n);
    const leaving = new AbortController();
    const before = metered.upstream.calls.length;
    metered.upstream.next(silentAfter(2));
    let text = "";
    const { signal } = leaving;
    const left = clients.of(name).call({
      ...callOf(key),
      signal,
      onMessage: (message) => {
        text += (message as Event).delta?.content ?? "";
        if (text === "Hello, ") leaving.abort();
      },
    });
    // Some clients return an answer with the error of the disconnect, others throw it.
    await left.catch(() => undefined);
    await metered.upstream.until(({ calls }) => calls[before]?.ended === "left");
    await metered.settled();
    expect(await metered.rows(key)).toMatchObject([{ output: 3, reason: expect.stringContaining("(the caller disconnected)") }]);
    expect((await metered.account(key)).held).toBe(0);
  },
);

test("a stream with reasoning, tool calls and text has the same events over all of them", async () => {
  const key = await metered.payer(1_000_000n);
  const callOnce = () => ({
    method: streamGenerate,
    request: {
      model: SANDBOX_MODEL,
      messages: [{ role: "user", content: "[[tools=2 tokens=9]] What is the weather?" }],
      tools: [{ name: "get_weather" }, { name: "get_time" }],
      reasoningEffort: "low",
      maxTokens: 200,
    },
    headers: { ...bearer(key.secret), "idempotency-key": "same" },
  });
  // The others get the stored reply, in which pieces of the same kind are joined.
  await callEach(clients, callOnce, wires.slice(0, 1));
  const answers = await callEach(clients, callOnce);
  const messages = answers[(wires[0] as Wire).name]?.messages;
  expect(JSON.stringify(messages)).toMatch(/"reasoning":\{.*"tool_call":\{.*"done":\{/);
  const seen = Object.entries(answers).map(([name, answer]) => [name, answer.messages]);
  expect(Object.fromEntries(seen)).toEqual(allOf(wires, messages));
  expect(await metered.rows(key)).toHaveLength(1);
});
