import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { containsKey, generateOperatorToken, isWellFormedOperatorToken, redactKeys } from "../../src/domain/credentials.ts";

const token = generateOperatorToken(randomBytes);

test("a token has a prefix, 26 random characters and their checksum", () => {
  expect(token).toMatch(/^vxo_[0-9A-Za-z]{32}$/);
  expect(isWellFormedOperatorToken(token)).toBe(true);
  expect(generateOperatorToken(randomBytes)).not.toBe(token);
});

test("a mistyped character makes a token invalid", () => {
  for (let i = 0; i < token.length; i++) {
    const other = token[i] === "x" ? "y" : "x";
    expect(isWellFormedOperatorToken(token.slice(0, i) + other + token.slice(i + 1)), String(i)).toBe(false);
  }
  for (const text of ["", "vxo_", token.slice(0, -1), `${token}0`, ` ${token}`, token.toUpperCase()]) {
    expect(isWellFormedOperatorToken(text), text).toBe(false);
  }
});

test("a token in a text is found and redacted", () => {
  expect(containsKey(`the token ${token}!`)).toBe(true);
  expect(containsKey(`vxo_vxo_${token.slice(4)}`)).toBe(true);
  expect(containsKey(token.slice(0, -1))).toBe(false);
  expect(redactKeys(`vx_session=vxs_${token.slice(4)}; vxs_${token.slice(4, 12)}`)).toBe(
    "vx_session=vxs_[redacted]; vxs_[redacted]",
  );
  expect(redactKeys(`a ${token} b ${token.slice(0, 12)}`)).toBe("a vxo_[redacted] b vxo_[redacted]");
});
