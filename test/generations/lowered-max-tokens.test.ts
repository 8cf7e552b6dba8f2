import { beforeAll, describe, expect, test } from "vitest";
import { post as postJson } from "../support/any-json.ts";
import type { TestKey } from "../support/fixtures.ts";
import { SANDBOX_MODEL, TEMPLATE_MODEL, useMetered } from "../support/metered.ts";

// The models have at most 500 output tokens. An input token costs 1 micro, an output token 2.

const metered = useMetered();

const messages = [{ role: "user", content: "Say hello to the world" }];
const own = { model: SANDBOX_MODEL, messages };
const LONG = [{ role: "user", content: "a ".repeat(600) }];

type Body = Readonly<Record<string, unknown>>;

let rich: TestKey;
beforeAll(async () => {
  rich = await metered.payer(1_000_000n);
});

async function post(path: string, body: Body, key = rich, headers = {}) {
  const { status, header, text } = await postJson(metered.app, key, path, body, headers);
  return { status, lowered: header("x-vx-max-tokens"), text };
}

const COMPATIBLE: readonly [path: string, field: string, body: Body][] = [
  ["/v1/chat/completions", "max_tokens", own],
  ["/v1/chat/completions", "max_completion_tokens", own],
  ["/v1/completions", "max_tokens", { model: SANDBOX_MODEL, prompt: "Once" }],
  ["/v1/responses", "max_output_tokens", { model: SANDBOX_MODEL, input: "Hello" }],
  ["/v1/messages", "max_tokens", own],
];

describe.each([false, true])("with stream: %s", (stream) => {
  describe.each(COMPATIBLE)("POST %s with %s", (path, field, body) => {
    test("a limit above the model's maximum is lowered, the maximum is not, and 0 is a 400", async () => {
      const send = (limit: number) => post(path, { ...body, stream, [field]: limit });
      for (const limit of [501, 2_147_483_647]) expect(await send(limit)).toMatchObject({ status: 200, lowered: "500" });
      expect(await send(500)).toMatchObject({ status: 200, lowered: null });
      expect(await send(0)).toMatchObject({ status: 400, text: expect.stringContaining(field) });
    });
  });

  const maxTokensOf = (text: string): number | null => {
    const [done] = /\{"done":.*\}/.exec(text) ?? [];
    const event = JSON.parse(done ?? text);
    return (event.done ?? event).max_tokens;
  };

  test.each<[name: string, body: Body, balance: bigint, lowered: number | null]>([
    ["the model's maximum", { max_tokens: 501 }, 10_000n, 500],
    ["the context window", { model: "fake", max_tokens: 500, messages: LONG }, 10_000n, 395],
    ["the balance", { model: TEMPLATE_MODEL }, BigInt(9 + 80 + 199), 99],
    ["max_cost_micros", { max_tokens: 10, max_cost_micros: 28 }, 10_000n, 9],
    ["max_cost_micros, without max_tokens", { max_cost_micros: 28 }, 10_000n, 9],
    ["nothing", { max_tokens: 10 }, 10_000n, null],
    ["nothing, without max_tokens", {}, 10_000n, null],
  ])("a native reply shows what %s leaves", async (_, fields, balance, lowered) => {
    const answer = await post("/v1/generate", { ...own, stream, ...fields }, await metered.payer(balance));
    expect(answer).toMatchObject({ status: 200, lowered: lowered === null ? null : String(lowered) });
    expect(maxTokensOf(answer.text)).toBe(lowered);
  });

  test("the replay of a reply shows it too", async () => {
    const headers = { "idempotency-key": `retry ${stream}` };
    const ask = () => post("/v1/generate", { ...own, stream, max_tokens: 501 }, rich, headers);
    const first = await ask();
    const again = await ask();
    expect(first).toMatchObject({ status: 200, lowered: "500" });
    expect(again).toMatchObject({ lowered: "500" });
    expect(maxTokensOf(again.text)).toBe(500);
  });
});
