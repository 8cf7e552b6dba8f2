import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { withoutLongTexts } from "../../src/rules/long-texts.ts";

const request = (content: string) =>
  create(GenerateRequestSchema, { model: "m".repeat(200), messages: [{ role: "user", content }] });
const light = (content: string) => withoutLongTexts(GenerateRequestSchema, request(content));

test("the validator gets short texts in place of long ones, and the request keeps them", () => {
  const whole = request("x".repeat(400_000));
  const copy = withoutLongTexts(GenerateRequestSchema, whole);
  expect(copy.messages[0]).toMatchObject({ role: "user", content: "" });
  expect(copy.model).toHaveLength(200);
  expect(whole.messages[0]?.content).toHaveLength(400_000);
});

test("short texts are passed to the validator", () => {
  expect(light("x".repeat(4_096)).messages[0]?.content).toHaveLength(4_096);
});

test.each(["x", "ä", "\u{1f600}"])(
  "400,000 of %s are accepted, one more is rejected with the name of the field",
  (character) => {
    expect(() => light(character.repeat(400_000))).not.toThrow();
    expect(() => light(`${character.repeat(400_000)}x`)).toThrow(
      expect.objectContaining({
        fields: [{ field: "messages[0].content", description: expect.any(String) }],
      }),
    );
  },
);
