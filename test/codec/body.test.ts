import { EventEmitter } from "node:events";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type BodySource, decompress, readBytes } from "../../src/codec/body.ts";
import { BodyBudget, type BodyShare } from "../../src/codec/body-budget.ts";
import { DomainError } from "../../src/domain/errors.ts";
import { bodyBudget } from "../../src/server/http/connection-limits.ts";

const COMPRESS = { gzip: gzipSync, br: brotliCompressSync };
const PLAIN = Buffer.alloc(1_500_000, "a");

/** Records what a body reserves of the budget. */
function shareOf(maxBytes: number) {
  const reserved: number[] = [];
  const sum = () => reserved.reduce((total, bytes) => total + bytes, 0);
  return {
    reserved,
    sum,
    reserve: (bytes: number) => {
      reserved.push(bytes);
      if (sum() > maxBytes) throw new DomainError("overloaded");
    },
    inTurn: <Result>(parse: () => Promise<Result>) => parse(),
  };
}

describe.each(["gzip", "br"] as const)("a body compressed with %s", (encoding) => {
  const compressed = COMPRESS[encoding](PLAIN);
  const limits = (share: ReturnType<typeof shareOf>, maxBytes = PLAIN.length) => ({ maxBytes, share, bodyMs: 1_000 });

  test("is decompressed, up to the limit itself", async () => {
    const share = shareOf(PLAIN.length);
    // The compressed bytes may be freed.
    expect((await decompress(Buffer.from(compressed), encoding, limits(share))).equals(PLAIN)).toBe(true);
    expect(share.sum()).toBe(PLAIN.length);
  });

  test("stops at the budget, before its output is in memory", async () => {
    const share = shareOf(400_000);
    const result = Promise.resolve(decompress(compressed, encoding, limits(share)));
    await expect(result).rejects.toMatchObject({ reason: "overloaded" });
    expect(share.sum()).toBeLessThanOrEqual(400_000 + 65_536);
    expect(Math.max(...share.reserved)).toBeLessThanOrEqual(65_536);
  });

  test("is refused when it is one byte larger than the limit", async () => {
    const result = Promise.resolve(decompress(compressed, encoding, limits(shareOf(PLAIN.length), PLAIN.length - 1)));
    await expect(result).rejects.toMatchObject({ kind: "too_large" });
  });

  test.each([
    ["cut off", compressed.subarray(0, compressed.length - 5)],
    ["not compressed", PLAIN.subarray(0, 100)],
  ])("is refused when it is %s", async (_, bytes) => {
    const result = Promise.resolve(decompress(bytes, encoding, limits(shareOf(PLAIN.length))));
    await expect(result).rejects.toMatchObject({ kind: "invalid" });
  });
});

test("Brotli decoders, which hold output that they have not returned, run one at a time", async () => {
  const budget = new BodyBudget(bodyBudget);
  const compressed = brotliCompressSync(PLAIN);
  const inTurn = Promise.withResolvers<void>();
  const before = budget.inTurn("other", () => inTurn.promise);
  const limits = (share: BodyShare) => ({ maxBytes: PLAIN.length, share, bodyMs: 1_000 });
  const waiting = Promise.resolve(decompress(Buffer.from(compressed), "br", limits(budget.openShare("account"))));
  // Gzip needs no turn.
  await decompress(gzipSync(PLAIN), "gzip", limits(budget.openShare("account")));
  expect(budget.usedBytes).toBe(PLAIN.length);
  inTurn.resolve();
  await Promise.all([before, waiting]);
  expect(budget.usedBytes).toBe(2 * PLAIN.length);
});

test.each([
  ["freed after a copy over HTTP/1.1", undefined, 0],
  ["left alone over HTTP/2, which may still read it", { endAfterHeaders: false }, 65_536],
])("the memory of a chunk is %s", async (_, stream, left) => {
  const source = Object.assign(new EventEmitter(), {
    headers: {},
    aborted: false,
    destroyed: false,
    readableEnded: false,
    ...(stream && { stream }),
    pause: () => undefined,
  });
  const read = readBytes(source as BodySource, { maxBytes: PLAIN.length, share: shareOf(PLAIN.length), bodyMs: 1_000 });
  const chunks = ["a", "b", "c"].map((letter) => Buffer.alloc(65_536, letter));
  const all = Buffer.concat(chunks);
  for (const chunk of chunks) source.emit("data", chunk);
  source.emit("end");
  expect((await read).equals(all)).toBe(true);
  expect(chunks.slice(1).map(({ buffer }) => buffer.byteLength)).toEqual([left, left]);
});
