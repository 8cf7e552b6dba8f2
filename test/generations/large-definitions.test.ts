import { expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { SMALL, usePaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";
import { turnsOf } from "../support/turns.ts";

const app = useTestApp();
const key = usePaidKey(app);

const messages = [{ role: "user", content: "Hello" }];
const chat = (parameters: object) => ({ messages, tools: [{ type: "function", function: { name: "f", parameters } }] });
const message = (input_schema: object) => ({ messages, max_tokens: 5, tools: [{ name: "f", input_schema }] });
const native = (parameters: object) => ({ messages, tools: [{ name: "f", parameters }] });
const response = (parameters: object) => ({ input: "Hello", tools: [{ type: "function", name: "f", parameters }] });

test.each<[path: string, requestOf: (schema: object) => object]>([
  ["/v1/generate", native],
  ["/v1/generate:quote", native],
  ["/v1/chat/completions", chat],
  ["/v1/responses", response],
  ["/v1/messages", message],
  ["/v1/messages/count_tokens", message],
])("%s: a schema of 60,000 names is processed in many turns", async (path, requestOf) => {
  const names = Array.from({ length: 60_000 }, (_, i) => [`k${i}`, 1]);
  const schema: object = Object.fromEntries(names);
  const send = async (properties: object) => {
    const body = JSON.stringify({ model: SMALL, ...requestOf(properties) });
    const headers = { ...bearer(key.secret), "content-type": "application/json", "idempotency-key": path };
    const answer = await fetch(app.url + path, { method: "POST", headers, body });
    await answer.text();
  };
  // The first call loads the tokenizer.
  await send({});
  // Measured: 7 to 20 for a small schema, 45 to 84 for this one.
  expect(await turnsOf(() => send(schema))).toBeGreaterThanOrEqual(30);
});
