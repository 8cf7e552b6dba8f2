import { expect, test, vi } from "vitest";
import { OPERATOR_TOKEN, useOwnApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { chargesOf, usePaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";

const app = useOwnApp();
const key = usePaidKey(app);
const other = usePaidKey(app);

const bodyBytes = async () => {
  const metrics = await (await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) })).text();
  return Number(/^vx_body_bytes (\d+)$/m.exec(metrics)?.[1]);
};

function embed(secret: string, texts: number, dimensions: number): Promise<Response> {
  return fetch(`${app.url}/v1/embed`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(secret) },
    body: JSON.stringify({ model: "vx-sandbox-embed", input: Array(texts).fill("a"), dimensions }),
  });
}

test("vectors of one account wait in memory only as far as the budget of requests has room", async () => {
  const large = await Promise.all(Array.from({ length: 10 }, () => embed(key.secret, 2_048, 2_048)));
  const accepted = large.filter(({ status }) => status === 200);
  const refused = large.filter(({ status }) => status !== 200);
  expect(accepted.length).toBeGreaterThanOrEqual(1);
  expect(accepted.length).toBeLessThanOrEqual(3);
  for (const response of refused) expect(await response.json()).toMatchObject({ error: { code: "overloaded" } });
  // The answers are not read yet, and another account is served beside them.
  expect(await bodyBytes()).toBeGreaterThan(accepted.length * 40_000_000);
  expect((await embed(other.secret, 256, 1_024)).status).toBe(200);
  for (const response of accepted) await response.body?.cancel();
  await vi.waitFor(async () => expect(await bodyBytes()).toBe(0));
  expect(await chargesOf(operatorOf(app), key)).toHaveLength(accepted.length);
});
