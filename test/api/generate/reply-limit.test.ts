import { expect, test } from "vitest";
import { raw } from "../../support/fake-upstreams/behaviours.ts";
import { ABLE_MODEL, useMetered } from "../../support/metered.ts";
import { bearer } from "../../support/protocols.ts";

const metered = useMetered();

test("a unary reply with more calls than a message can have is delivered up to that limit and charged", async () => {
  const key = await metered.payer(10_000n);
  const call = (index: number) => ({ index, id: `call_${index}`, function: { name: "f", arguments: "{}" } });
  const chunks = Array.from({ length: 300 }, (_, i) => ({
    choices: [{ index: 0, delta: { tool_calls: [call(i)] } }],
  }));
  metered.upstream.next(raw(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")));
  const answer = await fetch(`${metered.app.url}/v1/generate`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json" },
    body: JSON.stringify({ model: ABLE_MODEL, messages: [{ role: "user", content: "Hi" }], max_tokens: 500 }),
  });
  const reply = (await answer.json()) as { finish_reason: string; message: { tool_calls: unknown[] } };
  expect({ status: answer.status, reason: reply.finish_reason }).toEqual({ status: 200, reason: "length" });
  expect(reply.message.tool_calls).toHaveLength(256);
  const [row] = await metered.rows(key);
  expect(row).toMatchObject({ input: 5, output: 500 });
});
