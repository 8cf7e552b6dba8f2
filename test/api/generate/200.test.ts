import { describe, expect, test } from "vitest";
import { reply, replyWhen } from "../../support/fake-upstreams/behaviours.ts";
import { generators } from "../../support/generators.ts";
import { COST_MICROS, HELD_MICROS, REQUEST, useMetered } from "../../support/metered.ts";
import { started } from "../../support/started.ts";

const metered = useMetered();

const TEXT = "Hello, world.";
const SUMMARY = {
  model: "fake",
  finishReason: "stop",
  usage: { inputTokens: 11n, outputTokens: 4n, costMicros: COST_MICROS, cost: "$0.000019" },
};

describe.each(generators)("over $name", ({ open }) => {
  const generator = started(() => open(metered.app.url));

  test("a reply contains its cost and the remaining balance, and one ledger entry matches it", async () => {
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

  test("the parts of a stream arrive as they are produced, and the ledger entry exists before the last event", async () => {
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
      // The ledger entry exists before the caller gets the last event.
      const [row] = await metered.rows(key);
      expect(event.value).toMatchObject({ ...SUMMARY, balanceMicros: 981n });
      expect(row).toMatchObject({ id: event.value?.id.replace("gen_", "led_"), amount: 19 });
      expect(await metered.account(key)).toEqual({ balance: 981, held: 0 });
    }
    expect({ text, summaries }).toEqual({ text: TEXT, summaries: 1 });
  });
});

test("usage that exceeds the hold is not charged", async () => {
  const key = await metered.payer(1_000n);
  metered.upstream.next(reply({ usage: { input: 1_000_000, output: 1_000_000 } }));
  const generator = (generators[0] as (typeof generators)[0]).open(metered.app.url);
  const { usage } = await generator.generate(REQUEST, { secret: key.secret });
  expect(usage).toMatchObject({ inputTokens: 26n, outputTokens: 10n, costMicros: HELD_MICROS });
  generator.close();
});
