import { afterAll, beforeAll, expect, test } from "vitest";
import { refuse, reply } from "../../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../../support/fake-upstreams/fake-upstream.ts";
import type { TestKey } from "../../support/fixtures.ts";
import { type Generator, generators } from "../../support/generators.ts";
import { REQUEST, useMetered } from "../../support/metered.ts";

const LOOPS = 10;
const HONEST_CALLS = 30;
const POISON = "a prompt that the upstream answers with 500";

/** An upstream that fails for one prompt only. */
const poisonable: Behaviour = (turn) =>
  JSON.stringify(turn.call.body).includes(POISON) ? refuse(500)(turn) : reply()(turn);

let generator: Generator;

const metered = useMetered();
beforeAll(() => {
  generator = (generators.find(({ name }) => name === "REST over HTTP/1.1") as (typeof generators)[0]).open(
    metered.app.url,
  );
});
afterAll(() => {
  generator.close();
});

/** Repeats the failing prompt, and returns the number of failed calls. */
async function attack({ secret }: TestKey, isOver: () => boolean): Promise<number> {
  const poisoned = { ...REQUEST, messages: [{ role: "user", content: POISON }] };
  let failed = 0;
  while (!isOver()) {
    await expect(generator.generate(poisoned, { secret })).rejects.toMatchObject({
      reason: "upstream_error",
    });
    failed++;
  }
  return failed;
}

test("ten loops of one account with failing prompts do not affect calls of another account", async () => {
  const attacker = await metered.payer(1_000_000n);
  const honest = await metered.payer(1_000_000n);
  metered.upstream.always(poisonable);
  let isOver = false;
  const attacks = Array.from({ length: LOOPS }, () => attack(attacker, () => isOver));
  await metered.upstream.until(({ calls }) => calls.length >= LOOPS);
  const texts: (string | undefined)[] = [];
  for (let i = 0; i < HONEST_CALLS; i++) {
    const { message } = await generator.generate(REQUEST, { secret: honest.secret });
    texts.push(message?.content);
  }
  isOver = true;
  const failed = (await Promise.all(attacks)).reduce((sum, count) => sum + count);
  expect(texts).toEqual(Array(HONEST_CALLS).fill("Hello, world."));
  expect(failed).toBeGreaterThan(LOOPS);
  expect(await metered.rows(attacker)).toEqual([]);
});
