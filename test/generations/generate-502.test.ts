import { expect, test } from "vitest";
import { endAfter, errorInside, hangUpAfter, raw, refuse, reply } from "../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../support/fake-upstreams/fake-upstream.ts";
import type { TestKey } from "../support/fixtures.ts";
import { useGenerator } from "../support/generators.ts";
import { REQUEST, useMetered } from "../support/metered.ts";

const metered = useMetered();

const FAILED = { reason: "upstream_error", code: "unavailable" };

// test/upstreams/misbehaviour.test.ts has more failures.
const beforeAnyToken: [string, Behaviour][] = [
  ["refuses the call", refuse(400)],
  ["ends before the first token", endAfter(0)],
  ["sends an unreadable body", raw("not json", { "content-type": "application/json" })],
];
const afterSomeTokens: [string, Behaviour][] = [
  ["closes the connection during the reply", hangUpAfter(2)],
  ["sends an error during the reply", errorInside(2)],
];

const generator = useGenerator(metered);

/** The upstream fails every attempt of the call and works again afterwards. */
async function failing(behaviour: Behaviour, call: () => Promise<unknown>): Promise<void> {
  metered.upstream.always(behaviour);
  await expect(call()).rejects.toMatchObject(FAILED);
  metered.upstream.always(reply());
  // A success between the failures: the breaker does not count them together.
  await generator.generate(REQUEST, { secret: (await metered.payer(100n)).secret });
}

async function read(secret: string): Promise<string> {
  let text = "";
  for await (const { event } of generator.stream(REQUEST, { secret })) {
    if (event.case === "delta") text += event.value.content;
  }
  return text;
}

test.each(beforeAnyToken)("an upstream that %s is not charged", async (_, behaviour) => {
  const key = await metered.payer(1_000n);
  await failing(behaviour, () => generator.generate(REQUEST, { secret: key.secret }));
  await failing(behaviour, () => read(key.secret));
  expect(await metered.rows(key)).toEqual([]);
  expect(await metered.account(key)).toEqual({ balance: 1_000, held: 0 });
});

test.each(afterSomeTokens)(
  "an upstream that %s: a stream is charged for its output, a unary call is not charged",
  async (_, behaviour) => {
    const key = await metered.payer(1_000n);
    await failing(behaviour, () => generator.generate(REQUEST, { secret: key.secret }));
    expect(await metered.rows(key)).toEqual([]);
    await failing(behaviour, () => read(key.secret));
    expect(await metered.rows(key)).toMatchObject([
      { amount: 15, reason: "Generation with fake: 9 tokens in, 3 tokens out (the upstream failed)" },
    ]);
    expect(await metered.account(key)).toEqual({ balance: 985, held: 0 });
  },
);

const LOOPS = 10;
const HONEST_CALLS = 10;
const POISON = "a prompt that the upstream answers with 500";

/** An upstream that fails for one prompt only. */
const poisonable: Behaviour = (turn) => (JSON.stringify(turn.call.body).includes(POISON) ? refuse(500)(turn) : reply()(turn));

/** Repeats the failing prompt, and returns the number of failed calls. */
async function attack({ secret }: TestKey, isOver: () => boolean): Promise<number> {
  const poisoned = { ...REQUEST, messages: [{ role: "user", content: POISON }] };
  let failed = 0;
  while (!isOver()) {
    await expect(generator.generate(poisoned, { secret })).rejects.toMatchObject({ reason: "upstream_error" });
    failed++;
  }
  return failed;
}

test("ten loops of one account with failing prompts do not affect calls of another account", async () => {
  const attacker = await metered.payer(1_000_000n);
  const honest = await metered.payer(1_000_000n);
  metered.upstream.always(poisonable);
  const before = metered.upstream.calls.length;
  let isOver = false;
  const attacks = Array.from({ length: LOOPS }, () => attack(attacker, () => isOver));
  await metered.upstream.until(({ calls }) => calls.length >= before + LOOPS);
  for (let i = 0; i < HONEST_CALLS; i++) {
    const { message } = await generator.generate(REQUEST, { secret: honest.secret });
    expect(message?.content).toBe("Hello, world.");
  }
  isOver = true;
  const failed = (await Promise.all(attacks)).reduce((sum, count) => sum + count);
  expect(failed).toBeGreaterThan(LOOPS);
  expect(await metered.rows(attacker)).toEqual([]);
});
