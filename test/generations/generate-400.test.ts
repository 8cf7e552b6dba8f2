import { expect, test } from "vitest";
import { type GenerateFields, useGenerator } from "../support/generators.ts";
import { REQUEST, useMetered } from "../support/metered.ts";
import { withinOneMinute } from "../support/minute.ts";

const metered = useMetered();
const generator = useGenerator(metered);

/** Why the call was refused. */
const reasonOf = (request: GenerateFields, secret: string) =>
  generator.generate(request, { secret }).then(
    () => "",
    ({ reason }) => reason as string,
  );

test("messages may fill the context window but for one token of the reply", async () => {
  const { secret } = await metered.payer(1_000_000n);
  // With four delimiter tokens.
  const words = (count: number) => [{ role: "user", content: "hi".concat(" hi".repeat(count - 1)) }];
  const before = metered.upstream.calls.length;
  expect(await reasonOf({ ...REQUEST, messages: words(996) }, secret)).toBe("context_length_exceeded");
  expect(metered.upstream.calls).toHaveLength(before);
  expect(await reasonOf({ ...REQUEST, messages: words(995) }, secret)).toBe("");
  expect(metered.upstream.calls.at(-1)?.body).toMatchObject({ max_tokens: 1 });
});

test("the order of checks: scope, rate, fields, model, balance", async () => {
  const wrong = { ...REQUEST, model: "none", maxTokens: 0 };
  const { accountId } = await metered.payer(0n);
  const keyWith = async (scopes: string[], rateLimitRpm: number) =>
    (await metered.operator.createKey({ accountId, name: "k", scopes, rateLimitRpm })).secret;
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
