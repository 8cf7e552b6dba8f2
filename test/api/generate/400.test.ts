import { beforeAll, expect, test } from "vitest";
import type { TestKey } from "../../support/fixtures.ts";
import { type GenerateFields, useGenerator } from "../../support/generators.ts";
import { REQUEST, useMetered } from "../../support/metered.ts";
import { withinOneMinute } from "../../support/minute.ts";

let key: TestKey;

const metered = useMetered();
beforeAll(async () => {
  key = await metered.payer(1_000_000n);
});

const said = (content: string) => ({ role: "user", content });
const generator = useGenerator(metered);

const unary = (request: GenerateFields) => generator.generate(request, { secret: key.secret });
/** Reads the stream to its end. */
const stream = async (request: GenerateFields) => {
  for await (const { event } of generator.stream(request, { secret: key.secret })) if (event.case === "done") return event.value;
  return undefined;
};

test("messages that exceed the context window get context_length_exceeded with the name of the field", async () => {
  // 996 words and four delimiter tokens leave no token for the reply.
  const words = (count: number) => [said("hi".concat(" hi".repeat(count - 1)))];
  const before = metered.upstream.calls.length;
  for (const call of [unary, stream])
    await expect(call({ ...REQUEST, messages: words(996) })).rejects.toMatchObject({
      reason: "context_length_exceeded",
      code: "invalid_argument",
      message: expect.stringContaining("messages"),
      metadata: { context_window: "1000", input_tokens: "1000" },
    });
  expect(metered.upstream.calls).toHaveLength(before);
  const { balance } = await metered.account(key);
  await unary({ ...REQUEST, messages: words(995) });
  expect(metered.upstream.calls.at(-1)?.body).toMatchObject({ max_tokens: 1 });
  expect((await metered.account(key)).balance).toBeLessThan(balance);
});

test("an unknown model is a 404 that names the field, before the balance is checked", async () => {
  const poor = await metered.payer(0n);
  await expect(generator.generate({ ...REQUEST, model: "none" }, { secret: poor.secret })).rejects.toMatchObject({
    reason: "model_not_found",
    code: "not_found",
  });
});

test("the order of checks: scope, rate, fields, model, balance", async () => {
  const wrong = { ...REQUEST, model: "none", maxTokens: 0 };
  const { accountId } = await metered.payer(0n);
  const keyWith = async (scopes: string[], rateLimitRpm: number) =>
    (await metered.operator.createKey({ accountId, name: "k", scopes, rateLimitRpm })).secret;
  const reasonOf = (request: GenerateFields, secret: string) =>
    generator.generate(request, { secret }).catch(({ reason }) => reason as string);
  expect(await reasonOf(wrong, "vx_live_nonsense")).toBe("invalid_api_key");
  expect(await reasonOf(wrong, await keyWith(["read"], 3))).toBe("insufficient_scope");
  await withinOneMinute(async () => {
    const secret = await keyWith(["generate"], 3);
    expect(await reasonOf(wrong, secret)).toBe("invalid_argument");
    expect(await reasonOf({ ...REQUEST, model: "none" }, secret)).toBe("model_not_found");
    expect(await reasonOf(REQUEST, secret)).toBe("insufficient_balance");
    expect(await reasonOf(wrong, secret)).toBe("rate_limit_exceeded");
  });
});
