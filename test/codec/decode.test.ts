import { setImmediate as nextTurn } from "node:timers/promises";
import { create, fromJson, toBinary } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { CreateChatCompletionRequestSchema as Chat } from "../../gen/vx/openai/v1/chat_pb.js";
import { readBinary } from "../../src/codec/binary/read-message.ts";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { decode, LARGE_BYTES, readJsonMessage } from "../../src/codec/decode.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { bodyBudget } from "../../src/server/listener-limits.ts";
import { longestTurnMs } from "../support/longest-turn.ts";

const reader = new Readers("ignore").of(Chat);
const json = (tools: unknown) => Buffer.from(JSON.stringify({ tools }));
const binary = (tools: unknown) =>
  Buffer.from(toBinary(Chat, create(Chat, { tools: fromJson(ValueSchema, tools as never) })));

/** Decodes the body so many times at once; returns the longest turn, in milliseconds of CPU time. */
function decodeTogether(times: number, bytes: Buffer, isJson: boolean): Promise<number> {
  const budget = new BodyBudget(bodyBudget);
  const decodeOnce = () =>
    decode(bytes, budget, isJson ? readJsonMessage(reader, bytes) : readBinary(Chat, bytes));
  // All of them start in one turn, which is measured too.
  return longestTurnMs(nextTurn().then(() => Promise.all(Array.from({ length: times }, decodeOnce))));
}

describe("32 concurrent bodies block no turn of the event loop for 50 ms:", () => {
  test.each([
    ["16,000 lists", Array(16_000).fill([])],
    [
      "15,000 names in objects of 60",
      Array(250).fill(Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`k${i}`, 1]))),
    ],
    ["lists in each other", Array(250).fill(JSON.parse(`${"[".repeat(60)}${"]".repeat(60)}`))],
  ])("%s", async (_name, tools) => {
    for (const isJson of [true, false]) {
      const bytes = isJson ? json(tools) : binary(tools);
      // Compiling takes CPU time, too.
      await decodeTogether(3, bytes, isJson);
      expect(await decodeTogether(32, bytes, isJson)).toBeLessThan(50);
    }
  });
});

test("a small body with many values waits for its turn; one with a long text is decoded at once", async () => {
  const budget = new BodyBudget(bodyBudget);
  const first = Promise.withResolvers<void>();
  const before = budget.inTurn(() => first.promise);
  const many = json(Array(65_000).fill([]));
  const long = json("x".repeat(LARGE_BYTES - 100));
  expect(many.length).toBeLessThan(LARGE_BYTES);
  let isManyDone = false;
  const waiting = Promise.resolve(decode(many, budget, readJsonMessage(reader, many))).then(() => {
    isManyDone = true;
  });
  await decode(long, budget, readJsonMessage(reader, long));
  expect(isManyDone).toBe(false);
  first.resolve();
  await Promise.all([before, waiting]);
});
