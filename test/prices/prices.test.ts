import { afterAll, expect, test } from "vitest";
import { sendJson } from "../rest/send-json.ts";
import { startTestApp, useOwnApp } from "../support/app.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { started } from "../support/started.ts";

/** Two servers on one database whose files have different prices, as during a rollout. */
const files = [1_000_000, 3_000_000].map((input) =>
  createModelsFile(`
models:
  - id: m
    aliases: [alias]
    context_window: 1000
    max_output_tokens: 50
    prices: {input: ${input}, output: 2000000}
    upstream: {kind: sandbox}
`),
);
const [first, second] = files as [(typeof files)[0], (typeof files)[0]];
const old = useOwnApp({ env: { VX_MODELS: first.path } });
const current = started(() => startTestApp({ env: { VX_MODELS: second.path }, database: old.database }));
const operator = useOperator(current);
afterAll(() => {
  for (const file of files) file.remove();
});

test.each(["m", "alias"])("lists the price versions of %s, latest first", async (model) => {
  expect(await operator.listPrices({ model })).toMatchObject({
    versions: [
      { model: "m", version: 2, prices: { input: 3_000_000n, cachedInput: 3_000_000n, output: 2_000_000n } },
      { model: "m", version: 1, prices: { input: 1_000_000n, output: 2_000_000n, request: 0n } },
    ],
    nextPageToken: "",
  });
});

test("a model that never had prices is not found", async () => {
  await expect(operator.listPrices({ model: "none" })).rejects.toThrow(/not_found.*"none"/);
});

test("pages have no gap and no overlap", async () => {
  const first = await operator.listPrices({ model: "m", pageSize: 1 });
  const second = await operator.listPrices({ model: "m", pageSize: 1, pageToken: first.nextPageToken });
  expect([...first.versions, ...second.versions].map(({ version }) => version)).toEqual([2, 1]);
  expect(second.nextPageToken).toBe("");
});

test("each server charges the prices that it loaded, and the entry names their version", async () => {
  const key = await createTestKey(operator);
  const { accountId } = key;
  await operator.creditAccount({ accountId, amountMicros: 10_000n, reason: "test", idempotencyKey: "1" });
  const body = { model: "alias", messages: [{ role: "user", content: "Hi" }], max_tokens: 5, user: "user-7" };
  const headers = { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" };
  const { secret } = key;
  for (const { url } of [old, current])
    expect(await sendJson(url, { verb: "POST", path: "/v1/chat/completions", secret, headers, body })).toMatchObject({
      status: 200,
    });
  const answer = await sendJson(current.url, { verb: "GET", path: "/v1/ledger", secret });
  const { entries } = answer.body as { entries: Record<string, unknown>[] };
  const [newer, older, credit] = entries;
  const both = {
    ...{ model: "m", user: "user-7", trace_id: "4bf92f3577b34da6a3ce929d0e0e4736", images: 0, image_tokens: 0 },
    ...{ cached_input_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 },
  };
  expect(older).toMatchObject({ ...both, price_version: 1, prices: { input: 1_000_000, output: 2_000_000 } });
  expect(newer).toMatchObject({ ...both, price_version: 2, prices: { input: 3_000_000, image: 0 } });
  expect(newer?.generation_id).toBe(String(newer?.id).replace("led_", "gen_"));
  expect(Number(newer?.amount_micros)).toBeLessThan(Number(older?.amount_micros));
  expect(credit).toMatchObject({ generation_id: "", user: "", trace_id: "", price_version: 0, prices: null });
  expect(await operator.audit({})).toMatchObject({ consistent: true, entries: 3n });
});
