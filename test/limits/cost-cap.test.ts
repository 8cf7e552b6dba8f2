import { expect, test } from "vitest";
import { post } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";

const app = useTestApp();
const key = useTestKey(app);
const messages = [{ role: "user", content: "hi" }];

test.each([
  ["/v1/chat/completions", { messages }],
  ["/v1/responses", { input: "hi" }],
  ["/v1/messages", { messages, max_tokens: 5 }],
])("%s refuses max_cost_micros by name, which limits only native calls", async (path, body) => {
  const send = (max_cost_micros: unknown) => post(app, key, path, { model: "vx-sandbox-small", ...body, max_cost_micros });
  // The account has no balance, which is checked after the request.
  expect(await send(null)).toMatchObject({ status: 402 });
  const text = expect.stringContaining("max_cost_micros: is not supported");
  expect(await send(1)).toMatchObject({ status: 400, text });
});
