import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { type GenerateRequestSchema, GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { reply } from "../support/fake-upstreams/behaviours.ts";
import { PNG } from "../support/images.ts";
import { REQUEST, SANDBOX_MODEL, useMetered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";
import { allOf, callEach, commonHeaders, rpcWires, useClients, type Wire, wires } from "./wires.ts";

const metered = useMetered();
const clients = useClients(wires, () => metered.app.url);
const operators = useClients(rpcWires, () => metered.app.adminUrl);
const { generate } = GenerateService.method;

/** Long enough to be compressed. */
const TEXT = "Hello, world. ".repeat(200);

test.each(wires)("$name: every field of a reply, its headers and its ledger entry", async ({ name }) => {
  const key = await metered.payer(2_000n);
  metered.upstream.next(reply({ pieces: [TEXT], usage: { input: 11, output: 400 } }));
  const answer = await clients.of(name).call({
    method: generate,
    request: { ...REQUEST, maxTokens: 501 },
    headers: { ...bearer(key.secret), "x-request-id": "my-request-1" },
  });
  const [row, ...others] = await metered.rows(key);
  expect(others).toEqual([]);
  expect(row).toMatchObject({ amount: 811, input: 11, output: 400, request_id: "my-request-1" });
  expect(row?.reason).toBe("Generation with fake: 11 tokens in, 400 tokens out");
  expect(await metered.account(key)).toEqual({ balance: 1_189, held: 0 });
  expect(answer.messages).toEqual([
    {
      id: row?.id.replace("led_", "gen_"),
      model: "fake",
      message: { role: "assistant", content: TEXT, parts: [], tool_call_id: "", tool_calls: [], reasoning: [] },
      finish_reason: "stop",
      usage: {
        input_tokens: "11",
        output_tokens: "400",
        cost_micros: "811",
        cost: "$0.000811",
        cached_input_tokens: "0",
        cache_write_tokens: "0",
        reasoning_tokens: "0",
        image_tokens: "0",
      },
      balance_micros: "1189",
      max_tokens: 500,
    },
  ]);
  const { "x-ratelimit-reset-requests": reset, ...headers } = commonHeaders(answer);
  expect(reset).toMatch(/^\d+s$/);
  expect(headers).toEqual({
    "x-request-id": "my-request-1",
    "cache-control": "no-store",
    "ratelimit-policy": '"rpm";q=1000000;w=60',
    ratelimit: `"rpm";r=999999;t=${reset?.slice(0, -1)}`,
    "x-ratelimit-limit-requests": "1000000",
    "x-ratelimit-remaining-requests": "999999",
    "x-vx-max-tokens": "500",
  });
  const compressed = ["grpc-encoding", "content-encoding"].map((header) => answer.headers[header]);
  // grpc-js does not show the encoding that it has decoded.
  if (name.includes("gzip") && !name.includes("grpc-js")) expect(compressed).toContain("gzip");
});

/** Has a value in every kind of field. */
const RICH: MessageInitShape<typeof GenerateRequestSchema> = {
  model: SANDBOX_MODEL,
  messages: [
    { role: "system", content: "Be brief. ä€\u{1f600}" },
    {
      role: "user",
      parts: [
        { text: "[[tools=2 tokens=9]] What is this?" },
        { image: { data: PNG, mediaType: "image/png", detail: "low" } },
        { image: { url: "https://example.com/cat.png" } },
      ],
    },
    {
      role: "assistant",
      toolCalls: [{ id: "call_0", name: "get_weather", arguments: '{"city":"Bern"}' }],
      reasoning: [{ text: "Hm.", signature: "forged" }, { encrypted: "opaque" }],
    },
    { role: "tool", toolCallId: "call_0", content: "sunny" },
    { role: "user", content: "[[tools=2 tokens=9]] And now?" },
  ],
  maxTokens: 200,
  temperature: 0.25,
  topP: 0.5,
  stop: ["END", "\n\n"],
  tools: [
    {
      name: "get_weather",
      description: "The weather in a city.",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
    { name: "get_time" },
  ],
  toolChoice: "auto",
  reasoningEffort: "low",
  user: "ada",
  maxCostMicros: 1_000_000n,
};

test("a request with every kind of field is the same payload over all of them, and so is its reply", async () => {
  const key = await metered.payer(1_000_000n);
  // The first call generates, and the others get its reply: another payload would be a 422.
  const answers = await callEach(clients, () => ({
    method: generate,
    request: RICH,
    headers: { ...bearer(key.secret), "idempotency-key": "same" },
  }));
  const messages = answers[(wires[0] as Wire).name]?.messages;
  expect(messages).toMatchObject([
    {
      finish_reason: "tool_calls",
      message: { tool_calls: [{ name: "get_weather" }, { name: "get_time" }], reasoning: [{}] },
      usage: { image_tokens: "170", reasoning_tokens: "16" },
    },
  ]);
  const seen = Object.entries(answers).map(([name, answer]) => [name, answer.messages]);
  expect(Object.fromEntries(seen)).toEqual(allOf(wires, messages));
  expect(await metered.rows(key)).toHaveLength(1);
});

test("operators get the same reply over every protocol of their port", async () => {
  const { accountId } = await metered.payer(7n);
  const answers = await callEach(operators, () => ({
    method: AdminService.method.getAccount,
    request: { accountId },
    headers: { ...bearer(OPERATOR_TOKEN), "x-request-id": "my-request-2" },
  }));
  const [first] = Object.values(answers);
  expect(first?.messages).toMatchObject([{ account: { id: accountId, plan: "tests", balance_micros: "7" } }]);
  const seen = Object.entries(answers).map(([name, answer]) => [
    name,
    { messages: answer.messages, headers: commonHeaders(answer) },
  ]);
  expect(Object.fromEntries(seen)).toEqual(
    allOf(rpcWires, {
      messages: first?.messages,
      headers: { "x-request-id": "my-request-2", "cache-control": "no-store", "x-vx-currency": "USD" },
    }),
  );
});
