import fc from "fast-check";
import { expect, test } from "vitest";
import { base64Bytes as base64BytesOf } from "../../src/codec/json/scalar.ts";
import { finish } from "../../src/codec/steps.ts";

const base64Bytes = (text: string) => base64BytesOf(Buffer.from(text));

test("every encoding of the same bytes is decoded, padded or not", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const standard = Buffer.from(bytes).toString("base64");
      const urlSafe = Buffer.from(bytes).toString("base64url");
      for (const text of [standard, standard.replace(/=+$/, ""), urlSafe])
        expect(Buffer.from(finish(base64Bytes(text)) ?? []).equals(bytes)).toBe(true);
    }),
  );
});

test.each(["A", "AB*C", "+/-_", "AB=C", "ABC===", "AAAAA"])("%s is not base64", (text) => {
  expect(finish(base64Bytes(text))).toBeUndefined();
});

const image = Buffer.alloc(4_194_304, "\u{1f600}é");

test("4 MiB are decoded in parts", () => {
  const steps = base64Bytes(image.toString("base64"));
  let count = 1;
  let step = steps.next();
  for (; !step.done; step = steps.next()) count++;
  expect(Buffer.from(step.value ?? []).equals(image)).toBe(true);
  expect(count).toBeGreaterThanOrEqual(6);
});

test("an invalid character in the last part is found, and so are two alphabets in two parts", () => {
  const text = image.toString("base64").slice(0, 4_194_304);
  expect(finish(base64Bytes(`${text}AB*C`))).toBeUndefined();
  expect(finish(base64Bytes(`+++/${text.replaceAll(/[+/]/g, "A")}-__-`))).toBeUndefined();
});
