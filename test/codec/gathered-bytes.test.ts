import fc from "fast-check";
import { expect, test } from "vitest";
import { freeBytes, GatheredBytes } from "../../src/codec/body.ts";
import { runs } from "../support/runs.ts";

const MAX_BODY = 33_554_432;

test("for any chunks and any content length, the bytes are those received", async () => {
  const chunks = fc.array(
    fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 20_000 }),
      fc.nat(1_000_000).map((length) => new Uint8Array(length + 1).fill(length)),
    ),
    { maxLength: 10 },
  );
  await fc.assert(
    fc.asyncProperty(chunks, fc.nat(4_000_000), async (parts, announced) => {
      const gathered = new GatheredBytes(announced);
      const copied = parts.map((part) => gathered.append(Buffer.from(part)));
      expect(copied).toEqual(parts.map((_, at) => at > 0));
      const all = Buffer.concat(parts);
      expect(gathered.size).toBe(all.length);
      expect((await gathered.bytes()).equals(all)).toBe(true);
    }),
    { numRuns: runs(30) },
  );
});

test("a large content length with few bytes allocates little memory", async () => {
  const gathered = new GatheredBytes(MAX_BODY);
  for (let i = 0; i < 1_000; i++) gathered.append(Buffer.from("a"));
  expect((await gathered.bytes()).buffer.byteLength).toBeLessThanOrEqual(65_536);
});

test("a large body with a content length is allocated once, before a tenth of it has arrived", async () => {
  const gathered = new GatheredBytes(MAX_BODY);
  const chunk = Buffer.alloc(65_536);
  const sizes = new Set<number>();
  while (gathered.size < MAX_BODY / 10) {
    gathered.append(chunk);
    sizes.add((await gathered.bytes()).buffer.byteLength);
  }
  expect((await gathered.bytes()).buffer.byteLength).toBe(MAX_BODY);
  expect([...sizes].filter((size) => size > MAX_BODY / 10)).toEqual([MAX_BODY]);
});

test("the memory of a large body can be freed, and that of a chunk is not", async () => {
  const gathered = new GatheredBytes(0);
  for (let i = 0; i < 8; i++) gathered.append(Buffer.alloc(65_536, "a"));
  const bytes = await gathered.bytes();
  freeBytes(bytes);
  expect(bytes.buffer.byteLength).toBe(0);
  const chunk = Buffer.alloc(524_288, "a");
  const only = new GatheredBytes(0);
  only.append(chunk);
  freeBytes(await only.bytes());
  expect(chunk.buffer.byteLength).toBe(524_288);
});

test("the memory of a discarded body is freed", async () => {
  const gathered = new GatheredBytes(524_288);
  for (let i = 0; i < 2; i++) gathered.append(Buffer.alloc(65_536, "a"));
  const bytes = await gathered.bytes();
  gathered.clear();
  expect(bytes.buffer.byteLength).toBe(0);
  expect(await gathered.bytes()).toHaveLength(0);
});

test("a large body of unknown length is joined in turns, and the memory of its blocks is freed", async () => {
  const gathered = new GatheredBytes(0);
  for (let i = 0; i < 128; i++) gathered.append(Buffer.alloc(65_536, i));
  let turns = 0;
  let isJoined = false;
  const count = () => {
    turns++;
    if (!isJoined) setImmediate(count);
  };
  setImmediate(count);
  const before = process.memoryUsage().arrayBuffers;
  const bytes = await gathered.bytes();
  isJoined = true;
  expect(bytes).toHaveLength(8 * 1_048_576);
  expect([bytes[0], bytes.at(-1)]).toEqual([0, 127]);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_048_576);
  expect(turns).toBeGreaterThan(7);
});
