import { expect, test } from "vitest";
import { reply, silent } from "../../support/fake-upstreams/behaviours.ts";
import { ABLE_MODEL, useMetered } from "../../support/metered.ts";
import { bearer } from "../../support/protocols.ts";

const metered = useMetered();

const image = { image: { url: "https://x.example/a.png" } };

function call(secret: string, images: number, signal?: AbortSignal) {
  return fetch(`${metered.app.url}/v1/generate`, {
    method: "POST",
    headers: { ...bearer(secret), "content-type": "application/json" },
    body: JSON.stringify({
      model: ABLE_MODEL,
      messages: [{ role: "user", parts: [{ text: "Hi" }, ...Array.from({ length: images }, () => image)] }],
      max_tokens: 50,
    }),
    signal: signal ?? null,
  });
}

/** 1 token of text, 4 of the message, and at most 100 of each image. */
const INPUT = 205;

test("images of a call whose usage is not reported are charged at their maximum", async () => {
  const key = await metered.payer(1_000n);
  metered.upstream.next(reply({ usage: undefined }));
  const { usage } = (await (await call(key.secret, 2)).json()) as { usage: Record<string, number> };
  expect(usage).toMatchObject({ input_tokens: INPUT, image_tokens: 200 });
  expect(await metered.rows(key)).toMatchObject([{ input: INPUT }]);
});

test("images are charged when the caller disconnects before the upstream reports its usage", async () => {
  const key = await metered.payer(1_000n);
  const left = new AbortController();
  const before = metered.upstream.calls.length;
  metered.upstream.next(silent);
  const answer = call(key.secret, 2, left.signal).catch(() => undefined);
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
  await call(key.secret, 2);
  expect(await metered.rows(key)).toMatchObject([{ input: 30, output: 4 }]);
});

test("the context window includes the maximum of each image", async () => {
  const key = await metered.payer(10_000n);
  expect((await call(key.secret, 9)).status).toBe(200);
  const error = { code: "context_length_exceeded", message: expect.stringContaining("at least 1005 tokens") };
  expect(await (await call(key.secret, 10)).json()).toMatchObject({ error });
});
