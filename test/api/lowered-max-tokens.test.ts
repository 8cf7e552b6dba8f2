import { describe, expect, test } from "vitest";
import { SANDBOX_MODEL, TEMPLATE_MODEL, useMetered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";

// The models have at most 500 output tokens. An input token costs 1 micro, an output token 2.

const metered = useMetered();

const HEADER = "x-vx-max-tokens";
const messages = [{ role: "user", content: "Say hello to the world" }];
const own = { model: SANDBOX_MODEL, messages };

type Body = Readonly<Record<string, unknown>>;

async function post(path: string, body: Body, options: { balance?: bigint; secret?: string; key?: string } = {}) {
  const secret = options.secret ?? (await metered.payer(options.balance ?? 10_000n)).secret;
  const answer = await fetch(`${metered.app.url}${path}`, {
    method: "POST",
    headers: {
      ...bearer(secret),
      "content-type": "application/json",
      ...(options.key === undefined ? {} : { "idempotency-key": options.key }),
    },
    body: JSON.stringify(body),
  });
  return { status: answer.status, lowered: answer.headers.get(HEADER), text: await answer.text() };
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
    test.each([501, 2_147_483_647])("above the model's maximum, %i is lowered", async (limit) => {
      const answer = await post(path, { ...body, stream, [field]: limit });
      expect(answer).toMatchObject({ status: 200, lowered: "500" });
    });

    test("the model's maximum is not lowered", async () => {
      expect(await post(path, { ...body, stream, [field]: 500 })).toMatchObject({
        status: 200,
        lowered: null,
      });
    });

    test("0 is a 400", async () => {
      const answer = await post(path, { ...body, stream, [field]: 0 });
      expect(answer).toMatchObject({ status: 400, text: expect.stringContaining(field) });
    });
  });

  const maxTokensOf = (text: string): number | null | undefined => {
    const [done] = /\{"done":.*\}/.exec(text) ?? [];
    const event = JSON.parse(done ?? text) as {
      done?: { max_tokens: number | null };
      max_tokens: number | null;
    };
    return (event.done ?? event).max_tokens;
  };

  test.each<[name: string, body: Body, balance: bigint, lowered: number | null]>([
    ["the model's maximum", { max_tokens: 501 }, 10_000n, 500],
    [
      "the context window",
      { model: "fake", max_tokens: 500, messages: [{ role: "user", content: "a ".repeat(600) }] },
      10_000n,
      395,
    ],
    ["the balance", { model: TEMPLATE_MODEL }, BigInt(9 + 80 + 199), 99],
    ["max_cost_micros", { max_tokens: 10, max_cost_micros: 28 }, 10_000n, 9],
    ["max_cost_micros, without max_tokens", { max_cost_micros: 28 }, 10_000n, 9],
    ["nothing", { max_tokens: 10 }, 10_000n, null],
    ["nothing, without max_tokens", {}, 10_000n, null],
  ])("a native reply shows what %s leaves", async (_, fields, balance, lowered) => {
    const answer = await post("/v1/generate", { ...own, stream, ...fields }, { balance });
    expect(answer).toMatchObject({ status: 200, lowered: lowered === null ? null : String(lowered) });
    expect(maxTokensOf(answer.text)).toBe(lowered);
  });

  test("the replay of a reply shows it too", async () => {
    const { secret } = await metered.payer(10_000n);
    const ask = () => post("/v1/generate", { ...own, stream, max_tokens: 501 }, { secret, key: "retry" });
    const first = await ask();
    const again = await ask();
    expect(first).toMatchObject({ status: 200, lowered: "500" });
    expect(again).toMatchObject({ lowered: "500" });
    expect(maxTokensOf(again.text)).toBe(500);
  });
});
