import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  endAfter,
  errorInside,
  gzipped,
  hangUpAfter,
  raw,
  refuse,
  reply,
} from "../../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../../support/fake-upstreams/fake-upstream.ts";
import { type Generator, generators } from "../../support/generators.ts";
import { type Metered, REQUEST, startMetered } from "../../support/metered.ts";

let metered: Metered;

beforeAll(async () => {
  metered = await startMetered();
});
afterAll(() => metered.stop());

const FAILED = { reason: "upstream_error", code: "unavailable" };

const beforeAnyToken: [string, Behaviour][] = [
  ["refuses the call", refuse(400)],
  ["does not know our key", refuse(401)],
  ["hangs up before the first token", hangUpAfter(0)],
  ["ends before the first token", endAfter(0)],
  ["says an error in place of the reply", errorInside(0)],
  ["sends what nobody can read", raw("not json", { "content-type": "application/json" })],
  ["compresses what must not be", gzipped],
];
const afterSomeTokens: [string, Behaviour][] = [
  ["hangs up in the middle", hangUpAfter(2)],
  ["ends in the middle", endAfter(2)],
  ["says an error in the middle", errorInside(2)],
];

/** What an upstream does is the same to every protocol; those that are asked again take their time. */
const THOROUGH = ["gRPC", "REST over HTTP/1.1"];

describe.each(generators)("over $name", ({ name, open }) => {
  const some = (cases: [string, Behaviour][]) => (THOROUGH.includes(name) ? cases : cases.slice(0, 1));

  let generator: Generator;
  beforeAll(() => {
    generator = open(metered.app.url);
  });
  afterAll(() => generator.close());

  /** Each call has its upstream fail however often it is asked, and then be well again. */
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

  test.each(some(beforeAnyToken))("an upstream that %s costs nothing", async (_, behaviour) => {
    const key = await metered.payer(1_000n);
    await failing(behaviour, () => generator.generate(REQUEST, { secret: key.secret }));
    await failing(behaviour, () => read(key.secret));
    expect(await metered.rows(key)).toEqual([]);
    expect(await metered.account(key)).toEqual({ balance: 1_000, held: 0 });
  });

  test.each(some(afterSomeTokens))(
    "an upstream that %s: a stream has cost what it gave, a call that got nothing has cost nothing",
    async (_, behaviour) => {
      const key = await metered.payer(1_000n);
      await failing(behaviour, () => generator.generate(REQUEST, { secret: key.secret }));
      expect(await metered.rows(key)).toEqual([]);
      await failing(behaviour, () => read(key.secret));
      expect(await metered.rows(key)).toMatchObject([
        { amount: 15, reason: "Generation with fake: 9 tokens in, 3 tokens out (the upstream broke off)" },
      ]);
      expect(await metered.account(key)).toEqual({ balance: 985, held: 0 });
    },
  );
});
