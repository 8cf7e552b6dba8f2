import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { post } from "../support/any-json.ts";
import { useGenerator } from "../support/generators.ts";
import { PNG } from "../support/images.ts";
import { HELD_MICROS, REQUEST, running, SANDBOX_MODEL, useMetered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";

const metered = useMetered();

const client = started(() => createClient(GenerateService, createGrpcTransport({ baseUrl: metered.app.url })));

const generator = useGenerator(metered);

const FITTING = {
  model: "fake",
  // The server counts nine tokens; the hold covers the byte bound of 26.
  inputTokens: 9n,
  maxTokens: 10,
  holdMicros: HELD_MICROS,
  hold: "$0.000046",
  fits: true,
  refusal: "",
};

const quote = async (secret: string, fields: object = {}) =>
  await client.quoteGenerate({ ...REQUEST, ...fields }, { headers: bearer(secret) });

test("a quote has the hold that the call places, and holds, runs and charges nothing", async () => {
  const key = await metered.payer(1_000n);
  const before = metered.upstream.calls.length;
  expect(await quote(key.secret)).toMatchObject(FITTING);
  expect(await metered.account(key)).toEqual({ balance: 1_000, held: 0 });
  expect(await metered.rows(key)).toEqual([]);
  expect(metered.upstream.calls).toHaveLength(before);
});

test("funds that running calls hold do not count", async () => {
  const key = await metered.payer(HELD_MICROS + 28n);
  const { end } = await running(metered, () => generator.generate(REQUEST, { secret: key.secret }));
  const refused = { fits: false, refusal: "insufficient_balance", maxTokens: 10, holdMicros: 29n };
  expect(await quote(key.secret)).toMatchObject(refused);
  await end();
  expect(await quote(key.secret)).toMatchObject(FITTING);
});

const NONE = { maxTokens: 0, holdMicros: 0n };
const LONG = [{ role: "user", content: "hi ".repeat(1_100) }];
const IMAGE = [{ role: "user", parts: [{ image: { data: PNG } }] }];
test.each([
  ["a low balance", 0n, {}, { refusal: "insufficient_balance", maxTokens: 10, holdMicros: 29n }],
  ["a lowered default limit", 200n, { maxTokens: undefined }, { refusal: "", maxTokens: 95, holdMicros: 199n }],
  ["a maximum cost", 1_000n, { maxCostMicros: 20n }, { refusal: "", maxTokens: 5, holdMicros: 19n }],
  ["a maximum cost that is too low", 1_000n, { maxCostMicros: 10n }, { ...NONE, refusal: "max_cost_too_low", inputTokens: 9n }],
  ["too long messages", 10_000n, { messages: LONG }, { ...NONE, refusal: "context_length_exceeded" }],
  ["an image", 100_000n, { model: SANDBOX_MODEL, messages: IMAGE }, { refusal: "", inputTokens: 4n + 1_000n }],
])("a quote shows %s as the call would", async (_name, balance, fields, expected) => {
  const { secret } = await metered.payer(balance);
  const { maxTokens: __, ...others } = REQUEST;
  const request = "maxTokens" in fields ? { ...others } : { ...REQUEST, ...fields };
  const quoted = await client.quoteGenerate(request, { headers: bearer(secret) });
  expect(quoted).toMatchObject({ ...expected, fits: expected.refusal === "" });
});

test("an invalid request is an error of the quote", async () => {
  const { secret } = await metered.payer(1_000n);
  await expect(quote(secret, { tools: [{ name: "a" }] })).rejects.toThrow(/tools: requires the capability/);
  await expect(quote(secret, { model: "none" })).rejects.toThrow(/There is no model "none"/);
});

test("over REST, the same body as for the call gets every field, and the headers of the rate window", async () => {
  const { secret } = await metered.payer(1_000n);
  const body = { model: "fake", messages: REQUEST.messages, max_tokens: 10, stream: true };
  const { header, json } = await post(metered.app, { secret }, "/v1/generate:quote", body);
  const amounts = { input_tokens: 9, max_tokens: 10, hold_micros: 46, hold: "$0.000046" };
  expect(json).toEqual({ model: "fake", ...amounts, fits: true, refusal: "", limit_id: "" });
  expect(header("ratelimit")).not.toBeNull();
});
