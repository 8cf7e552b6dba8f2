import { expect, test } from "vitest";
import { CreateChatCompletionRequestSchema as Chat } from "../../gen/vx/openai/v1/chat_pb.js";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { decode, LARGE_BYTES, readJsonMessage } from "../../src/codec/decode.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { bodyBudget } from "../../src/server/http/connection-limits.ts";

const reader = new Readers("ignore").of(Chat);
const json = (tools: unknown) => Buffer.from(JSON.stringify({ tools }));

test("a small body with many values waits for its turn; one with a long text is decoded at once", async () => {
  const budget = new BodyBudget(bodyBudget);
  const first = Promise.withResolvers<void>();
  const before = budget.inTurn(undefined, () => first.promise);
  const many = json(Array(65_000).fill([]));
  const long = json("x".repeat(LARGE_BYTES - 100));
  expect(many.length).toBeLessThan(LARGE_BYTES);
  let isManyDone = false;
  const waiting = Promise.resolve(decode(many, budget.openShare(undefined), readJsonMessage(reader, many))).then(() => {
    isManyDone = true;
  });
  await decode(long, budget.openShare(undefined), readJsonMessage(reader, long));
  expect(isManyDone).toBe(false);
  first.resolve();
  await Promise.all([before, waiting]);
});
