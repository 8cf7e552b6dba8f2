import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reply, replyWhen } from "../../support/fake-upstreams/behaviours.ts";
import { type Generator, generators } from "../../support/generators.ts";
import { COST_MICROS, HELD_MICROS, type Metered, REQUEST, startMetered } from "../../support/metered.ts";

let metered: Metered;

beforeAll(async () => {
  metered = await startMetered();
});
afterAll(() => metered.stop());

const TEXT = "Hello, world.";
const SUMMARY = {
  model: "fake",
  finishReason: "stop",
  usage: { inputTokens: 11n, outputTokens: 4n, costMicros: COST_MICROS, cost: "$0.000019" },
};

describe.each(generators)("over $name", ({ open }) => {
  let generator: Generator;
  beforeAll(() => {
    generator = open(metered.app.url);
  });
  afterAll(() => generator.close());

  test("a reply says what it cost and what is left, and one row of the ledger says the same", async () => {
    const key = await metered.payer(1_000n);
    const headers = { "x-request-id": "my-request-1" };
    const reply = await generator.generate(REQUEST, { secret: key.secret, headers });
    expect(reply).toMatchObject({
      ...SUMMARY,
      id: expect.stringMatching(/^gen_/),
      message: { role: "assistant", content: TEXT },
      balanceMicros: 981n,
    });
    expect(await metered.account(key)).toEqual({ balance: 981, held: 0 });
    expect(await metered.rows(key)).toEqual([
      {
        id: reply.id.replace("gen_", "led_"),
        amount: 19,
        reason: "Generation with fake: 11 tokens in, 4 tokens out",
        input: 11,
        output: 4,
        request_id: "my-request-1",
      },
    ]);
  });

  test("the pieces of a stream come when they are made, and the summary is in the ledger when it comes", async () => {
    const key = await metered.payer(1_000n);
    const rest = Promise.withResolvers<void>();
    metered.upstream.next(replyWhen(rest.promise, 2));
    let text = "";
    let summaries = 0;
    for await (const { event } of generator.stream(REQUEST, { secret: key.secret })) {
      if (event.case === "delta") {
        text += event.value.content;
        if (text === "Hello, ") {
          expect(await metered.account(key)).toEqual({ balance: 1_000, held: Number(HELD_MICROS) });
          expect(await metered.rows(key)).toEqual([]);
          rest.resolve();
        }
        continue;
      }
      summaries++;
      // The row is there before the caller can know of the end.
      const [row] = await metered.rows(key);
      expect(event.value).toMatchObject({ ...SUMMARY, balanceMicros: 981n });
      expect(row).toMatchObject({ id: event.value?.id.replace("gen_", "led_"), amount: 19 });
      expect(await metered.account(key)).toEqual({ balance: 981, held: 0 });
    }
    expect({ text, summaries }).toEqual({ text: TEXT, summaries: 1 });
  });
});

test("what an upstream reports beyond what was held is not charged", async () => {
  const key = await metered.payer(1_000n);
  metered.upstream.next(reply({ usage: { input: 1_000_000, output: 1_000_000 } }));
  const generator = (generators[0] as (typeof generators)[0]).open(metered.app.url);
  const { usage } = await generator.generate(REQUEST, { secret: key.secret });
  expect(usage).toMatchObject({ inputTokens: 26n, outputTokens: 10n, costMicros: HELD_MICROS });
  generator.close();
});
