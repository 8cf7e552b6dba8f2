import { createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fingerprintOf, generateKey, isWellFormedKey, laneOfKey, maskKey } from "../../src/domain/credentials.ts";
import { LANE_COUNT } from "../../src/domain/lane.ts";
import { runs } from "../support/runs.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX = "vx_live_";
const lanes = fc.integer({ min: 0, max: LANE_COUNT - 1 });
const keys = lanes.map((lane) => generateKey(lane, randomBytes).secret);

describe("a new key", () => {
  test("has the prefix, 32 characters of base 62, and contains its lane", () => {
    fc.assert(
      fc.property(lanes, (lane) => {
        const key = generateKey(lane, randomBytes);
        expect(key.secret).toMatch(/^vx_live_[0-9A-Za-z]{32}$/);
        expect(key.fingerprint).toBe(createHash("sha256").update(key.secret).digest("hex"));
        expect(fingerprintOf(key.secret)).toBe(key.fingerprint);
        expect(laneOfKey(key.secret)).toBe(lane);
        expect(isWellFormedKey(key.secret)).toBe(true);
      }),
    );
  });

  test("shows only the first and the last four of its 32 characters", () => {
    const { secret, visibleStart, visibleEnd } = generateKey(9, randomBytes);
    expect(maskKey(visibleStart, visibleEnd)).toBe(`${secret.slice(0, 12)}…${secret.slice(-4)}`);
  });

  test("skips bytes that would bias the characters", () => {
    const fair = (size: number, from: number) =>
      Buffer.from(
        Array.from(
          { length: size },
          (_, i) =>
            (createHash("sha256")
              .update(`${from + i}`)
              .digest()[0] ?? 0) % 248,
        ),
      );
    let taken = 0;
    const source = (size: number) => {
      taken += size;
      return fair(size, taken - size);
    };
    const expected = generateKey(0, source).secret;
    // The same bytes, each followed by one from 248 on. Modulo 62 these would give the first 8 characters.
    taken = 0;
    const biased = (size: number) => Buffer.from([...source(size / 2)].flatMap((byte, i) => [byte, 248 + (i % 8)]));
    expect(generateKey(0, biased).secret).toBe(expected);
  });
});

describe("the checksum of a key", () => {
  test("detects each mistyped character", () => {
    const position = fc.integer({ min: 0, max: 31 });
    const character = fc.constantFrom(...ALPHABET);
    fc.assert(
      fc.property(keys, position, character, (secret, at, other) => {
        const i = PREFIX.length + at;
        fc.pre(secret[i] !== other);
        expect(isWellFormedKey(secret.slice(0, i) + other + secret.slice(i + 1))).toBe(false);
      }),
      { numRuns: runs(1_000) },
    );
  });

  test("detects two swapped adjacent characters", () => {
    fc.assert(
      fc.property(keys, fc.integer({ min: 0, max: 30 }), (secret, at) => {
        const i = PREFIX.length + at;
        fc.pre(secret[i] !== secret[i + 1]);
        const swapped = `${secret.slice(0, i)}${secret[i + 1]}${secret[i]}${secret.slice(i + 2)}`;
        expect(isWellFormedKey(swapped)).toBe(false);
      }),
      { numRuns: runs(500) },
    );
  });

  test("a key with a lane above the last one is not well-formed", () => {
    const { secret } = generateKey(LANE_COUNT - 1, randomBytes);
    expect(isWellFormedKey(secret)).toBe(true);
    expect(isWellFormedKey(generateKey(LANE_COUNT, randomBytes).secret)).toBe(false);
  });

  test("is the CRC-32 of all that precedes it, the prefix included", () => {
    const { secret } = generateKey(5, randomBytes);
    const digits = [...secret.slice(-6)].map((digit) => ALPHABET.indexOf(digit));
    expect(digits.reduce((value, digit) => value * 62 + digit, 0)).toBe(crc32(secret.slice(0, -6)));
  });

  test("never changes: issued keys stay well-formed", () => {
    expect(isWellFormedKey(`${PREFIX}0123456789ABCDEFGHIJKLMNOPCHECKS`)).toBe(false);
    expect(isWellFormedKey("vx_live_UuNMCXPbAPEVALtjS9V4TG8qiL28SkBb")).toBe(true);
    expect(laneOfKey("vx_live_UuNMCXPbAPEVALtjS9V4TG8qiL28SkBb")).toBe(777);
  });
});

test("any other text is not well-formed", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(isWellFormedKey(text)).toBe(false);
      expect(isWellFormedKey(`${PREFIX}${text}`)).toBe(false);
    }),
  );
  const { secret } = generateKey(0, randomBytes);
  for (const text of [`${secret}\n`, ` ${secret}`, `${secret}0`, secret.slice(0, -1), secret.toUpperCase()]) {
    expect(isWellFormedKey(text)).toBe(false);
  }
});
