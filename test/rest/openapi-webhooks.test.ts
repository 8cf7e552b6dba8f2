import { expect, test } from "vitest";
import { EVENT_TYPES } from "../../src/events/types.ts";
import { describedWebhooks, expectDescribed } from "../support/webhook-bodies.ts";

test("the document has a webhook of each type of event", () => {
  expect([...describedWebhooks.keys()].sort()).toEqual([...EVENT_TYPES.keys()].sort());
  const ids = [...describedWebhooks.values()].map(({ operationId }) => operationId);
  expect(ids).toContain("BalanceLow");
  expect(new Set(ids).size).toBe(ids.length);
});

test.each([...describedWebhooks])("the example of %s is a body of this type", (type, post) => {
  const { example } = post.requestBody.content["application/json"];
  expect(example.type).toBe(type);
  expectDescribed(example);
});

test.each([
  ["a number as text", { seq: "12" }],
  ["no time", { timestamp: undefined }],
  ["an amount as text", { data: { balance_micros: "1" } }],
])("a body with %s does not match", (_, change) => {
  const example = describedWebhooks.get("balance.low")?.requestBody.content["application/json"].example;
  expect(() => expectDescribed({ ...example, data: {}, type: "balance.low", ...change })).toThrow("balance.low: data");
});
