import { expect, test } from "vitest";
import { endAfter, errorInside, gzipped, hangUpAfter, raw, refuse, reply } from "../../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../../support/fake-upstreams/fake-upstream.ts";
import { useGenerator } from "../../support/generators.ts";
import { REQUEST, useMetered } from "../../support/metered.ts";

const metered = useMetered();

const FAILED = { reason: "upstream_error", code: "unavailable" };

const beforeAnyToken: [string, Behaviour][] = [
  ["refuses the call", refuse(400)],
  ["rejects our key", refuse(401)],
  ["closes the connection before the first token", hangUpAfter(0)],
  ["ends before the first token", endAfter(0)],
  ["sends an error in place of the reply", errorInside(0)],
  ["sends an unreadable body", raw("not json", { "content-type": "application/json" })],
  ["compresses the response", gzipped],
];
const afterSomeTokens: [string, Behaviour][] = [
  ["closes the connection during the reply", hangUpAfter(2)],
  ["ends during the reply", endAfter(2)],
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
