import { expect, test } from "vitest";
import { recordedUser } from "../../src/rules/request-values.ts";

test("an id of up to 128 characters is recorded as it is, also with surrogate pairs", () => {
  for (const id of ["", "a".repeat(128), "🎈".repeat(128)]) expect(recordedUser(id)).toBe(id);
});

test("a longer id is recorded as its SHA-256", () => {
  for (const id of ["a".repeat(129), "🎈".repeat(129)]) expect(recordedUser(id)).toMatch(/^[0-9a-f]{64}$/);
  expect(recordedUser("a".repeat(129))).not.toBe(recordedUser("a".repeat(130)));
});
