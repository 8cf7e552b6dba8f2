import { expect, test } from "vitest";
import { refuse, reply } from "../../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../../support/fake-upstreams/fake-upstream.ts";
import type { TestKey } from "../../support/fixtures.ts";
import { useGenerator } from "../../support/generators.ts";
import { REQUEST, useMetered } from "../../support/metered.ts";

const LOOPS = 10;
const HONEST_CALLS = 10;
const POISON = "a prompt that the upstream answers with 500";

/** An upstream that fails for one prompt only. */
const poisonable: Behaviour = (turn) => (JSON.stringify(turn.call.body).includes(POISON) ? refuse(500)(turn) : reply()(turn));

const metered = useMetered();
const generator = useGenerator(metered);

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
