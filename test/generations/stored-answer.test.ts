import { expect, test } from "vitest";
import { decodeAnswer, encodeAnswer, type StoredAnswer } from "../../src/generations/stored-answer.ts";

const ANSWER: StoredAnswer = {
  id: "gen_1",
  output: { text: "", reasoning: [], toolCalls: [] },
  vectors: [Float32Array.of(1, 2)],
  finishReason: "stop",
  loweredMaxTokens: 500,
  failure: undefined,
};

test("an answer with vectors is stored and read", () => {
  expect(decodeAnswer(encodeAnswer(ANSWER))).toEqual(ANSWER);
});

test.each(["END", null, undefined])("an answer that ended with the stop text %j is stored and read", (stopSequence) => {
  const answer = { ...ANSWER, stopSequence };
  expect(decodeAnswer(encodeAnswer(answer)).stopSequence).toBe(stopSequence);
});

test.each(["", "AAA=", "AADAfw=="])("the invalid stored vector %j is an error, not an empty vector", (base64) => {
  const stored = { ...(JSON.parse(encodeAnswer(ANSWER)) as object), vectors: [base64] };
  expect(() => decodeAnswer(JSON.stringify(stored))).toThrow("invalid vector");
});
