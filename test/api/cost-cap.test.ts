import { beforeAll, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";

let secret: string;

const app = useTestApp();
beforeAll(async () => {
  ({ secret } = await createTestKey(operatorOf(app)));
});

const messages = [{ role: "user", content: "hi" }];

test.each([
  ["/v1/chat/completions", { messages }],
  ["/v1/responses", { input: "hi" }],
  ["/v1/messages", { messages, max_tokens: 5 }],
])("%s refuses max_cost_micros by name, which limits only native calls", async (path, body) => {
  const send = async (fields: object) => {
    const response = await fetch(`${app.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...bearer(secret) },
      body: JSON.stringify({ model: "vx-sandbox-small", ...body, ...fields }),
    });
    return { status: response.status, text: await response.text() };
  };
  // The account has no balance, which is checked after the request.
  expect(await send({ max_cost_micros: null })).toMatchObject({ status: 402 });
  const refused = await send({ max_cost_micros: 1 });
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("max_cost_micros: is not supported");
});
