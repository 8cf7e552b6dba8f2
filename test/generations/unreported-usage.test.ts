import { expect, test } from "vitest";
import { post } from "../support/any-json.ts";
import { raw, reply, silent } from "../support/fake-upstreams/behaviours.ts";
import type { TestKey } from "../support/fixtures.ts";
import { ABLE_MODEL, useMetered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";

const metered = useMetered();

const image = { image: { url: "https://x.example/a.png" } };

const bodyOf = (images: number) => ({
  model: ABLE_MODEL,
  messages: [{ role: "user", parts: [{ text: "Hi" }, ...Array.from({ length: images }, () => image)] }],
  max_tokens: 50,
});
const call = (key: TestKey, images: number) => post(metered.app, key, "/v1/generate", bodyOf(images));

/** 1 token of text, 4 of the message, and at most 100 of each image. */
const INPUT = 205;

test("images of a call whose usage is not reported are charged at their maximum", async () => {
  const key = await metered.payer(1_000n);
  metered.upstream.next(reply({ usage: undefined }));
  expect((await call(key, 2)).json.usage).toMatchObject({ input_tokens: INPUT, image_tokens: 200 });
  expect(await metered.rows(key)).toMatchObject([{ input: INPUT }]);
});

test("images are charged when the caller disconnects before the upstream reports its usage", async () => {
  const key = await metered.payer(1_000n);
  const left = new AbortController();
  const before = metered.upstream.calls.length;
  metered.upstream.next(silent);
  const headers = { ...bearer(key.secret), "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(bodyOf(2)), signal: left.signal };
  const answer = fetch(`${metered.app.url}/v1/generate`, init).catch(() => undefined);
  await metered.upstream.until(({ calls }) => (calls[before]?.pieces ?? -1) >= 0);
  left.abort();
  await answer;
  await metered.gone();
  await metered.settled();
  expect(await metered.rows(key)).toMatchObject([{ input: INPUT, output: 0, amount: INPUT }]);
});

test("reported usage is charged although it is below the maximum of the images", async () => {
  const key = await metered.payer(1_000n);
  metered.upstream.next(reply({ usage: { input: 30, output: 4 } }));
  await call(key, 2);
  expect(await metered.rows(key)).toMatchObject([{ input: 30, output: 4 }]);
});

test("the context window includes the maximum of each image", async () => {
  const key = await metered.payer(10_000n);
  expect((await call(key, 9)).status).toBe(200);
  const error = { code: "context_length_exceeded", message: expect.stringContaining("at least 1005 tokens") };
  expect((await call(key, 10)).json).toMatchObject({ error });
});

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
