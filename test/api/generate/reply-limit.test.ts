import { expect, test } from "vitest";
import { post } from "../../support/any-json.ts";
import { raw } from "../../support/fake-upstreams/behaviours.ts";
import { ABLE_MODEL, useMetered } from "../../support/metered.ts";

const metered = useMetered();

test("a unary reply with more calls than a message can have is delivered up to that limit and charged", async () => {
  const key = await metered.payer(10_000n);
  const call = (index: number) => ({ index, id: `call_${index}`, function: { name: "f", arguments: "{}" } });
  const chunks = Array.from({ length: 300 }, (_, i) => ({ choices: [{ index: 0, delta: { tool_calls: [call(i)] } }] }));
  metered.upstream.next(raw(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")));
  const body = { model: ABLE_MODEL, messages: [{ role: "user", content: "Hi" }], max_tokens: 500 };
  const { status, json } = await post(metered.app, key, "/v1/generate", body);
  expect([status, json.finish_reason]).toEqual([200, "length"]);
  expect(json.message.tool_calls).toHaveLength(256);
  const [row] = await metered.rows(key);
  expect(row).toMatchObject({ input: 5, output: 500 });
});
