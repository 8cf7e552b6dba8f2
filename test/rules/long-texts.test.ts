import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { EmbedRequestSchema } from "../../gen/vx/v1/embed_pb.js";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { withoutLongTexts } from "../../src/rules/validate.ts";

const request = (content: string) =>
  create(GenerateRequestSchema, { model: "m".repeat(200), messages: [{ role: "user", content }] });
const light = (content: string) => withoutLongTexts(GenerateRequestSchema, request(content));

test("the validator gets short texts in place of long ones, and the request keeps them", () => {
  const whole = request("x".repeat(400_000));
  const copy = withoutLongTexts(GenerateRequestSchema, whole);
  expect(copy.messages[0]).toMatchObject({ role: "user", content: "x" });
  expect(copy.model).toHaveLength(200);
  expect(whole.messages[0]?.content).toHaveLength(400_000);
});

test("short texts are passed to the validator", () => {
  expect(light("x".repeat(4_096)).messages[0]?.content).toHaveLength(4_096);
});

test.each(["x", "ä", "\u{1f600}"])("400,000 of %s are accepted, one more is rejected with the name of the field", (character) => {
  expect(() => light(character.repeat(400_000))).not.toThrow();
  expect(() => light(`${character.repeat(400_000)}x`)).toThrow(
    expect.objectContaining({ fields: [{ field: "messages[0].content", description: expect.any(String) }] }),
  );
});

test("the texts of a list are short for the validator, and empty ones stay empty", () => {
  const whole = create(EmbedRequestSchema, { model: "m", input: ["", "two words", "x".repeat(4_090)] });
  expect(withoutLongTexts(EmbedRequestSchema, whole).input).toEqual(["", "x", "x"]);
  const short = create(EmbedRequestSchema, { model: "m", input: ["a", ""] });
  expect(withoutLongTexts(EmbedRequestSchema, short)).toBe(short);
  whole.input[1] = "x".repeat(400_001);
  expect(() => withoutLongTexts(EmbedRequestSchema, whole)).toThrow(
    expect.objectContaining({ fields: [{ field: "input[1]", description: expect.any(String) }] }),
  );
});
