import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "vitest";
import { Base64Json, inTurns, RawJson, writeBody } from "../../src/upstreams/http/request-body.ts";
import { flood } from "../support/fake-upstreams/behaviours.ts";
import { DEFAULT_REPLY, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import type { Wire } from "../support/fake-upstreams/wire.ts";
import { largeConversation } from "../support/large-work.ts";
import { turnsOf } from "../support/turns.ts";
import { bytesOf } from "./requests-support.ts";
import { NEVER, openRemote, PROMPT, read, STREAMED_WIRES, WIRES } from "./support.ts";

const HUNDRED_MB = 100_000_000;
/** A reader that keeps all of a flood uses four times as much. */
const MAX_BYTES = 15_000_000;
const BLANKS = " ".repeat(65_536);
const COMMENTS = ": still thinking\n\n".repeat(3_000);
const LONGEST = { ...PROMPT, maxTokens: 32_000 };

let fake: FakeUpstream;
afterEach(() => fake.stop());

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** The memory in use, without garbage, whose amount depends on the time of the last collection. */
function usedBytes(): number {
  // The first collection leaves the memory of some buffers to the second one.
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The message of the failure that ends a flood of 100 MB, and the memory that it takes. */
async function readFlood(wire: Wire, block: string, { prefix = "", prompt = PROMPT } = {}) {
  const before = usedBytes();
  let mostBytes = 0;
  let blocks = 0;
  const measured = () => {
    // At 8, 16, 32 … blocks: a collection takes longer than to read a block.
    if (++blocks >= 8 && Number.isInteger(Math.log2(blocks))) mostBytes = Math.max(mostBytes, usedBytes() - before);
    return block;
  };
  fake = await FakeUpstream.start({ wire, usual: flood(measured, HUNDRED_MB, prefix) });
  const upstream = openRemote(fake.settings());
  const { failure } = await read(upstream.generate(prompt, NEVER));
  await fake.until(({ calls }) => calls[0]?.ended === "left");
  await upstream.close();
  return { message: (failure as Error).message, mostBytes };
}

describe.each(WIRES)("$name", (wire) => {
  const isJson = wire.contentType.includes("json");
  const prefix = isJson ? '{"a":"' : "data: ";

  test("reading stops in 100 MB without a line end", async () => {
    const { message, mostBytes } = await readFlood(wire, BLANKS, { prefix, prompt: LONGEST });
    expect(message).toBe(isJson ? "the response has more than 2097152 bytes" : "an event of the response is too large");
    expect(mostBytes).toBeLessThan(MAX_BYTES);
  });
});

describe.each(STREAMED_WIRES)("$name", (wire) => {
  test("reading stops in 100 MB of comments", async () => {
    const { message, mostBytes } = await readFlood(wire, COMMENTS);
    expect(message).toMatch(/^the response has more than \d+ bytes$/);
    expect(mostBytes).toBeLessThan(MAX_BYTES);
  });

  test("comments are not buffered when the size limit is high", async () => {
    const { message, mostBytes } = await readFlood(wire, COMMENTS, { prompt: LONGEST });
    expect(message).toMatch(/^the response has more than \d+ bytes$/);
    expect(mostBytes).toBeLessThan(MAX_BYTES);
  });
});

test("a conversation of 32 MiB is encoded as JSON in parts", async () => {
  const { value, chars } = largeConversation();
  const { parts, bytes } = await writeBody(value, chars);
  const written = bytesOf(parts);
  expect(written.length).toBe(bytes);
  expect(written.equals(Buffer.from(JSON.stringify(value)))).toBe(true);
});

test("JSON text becomes part of a small and of a large body", async () => {
  const small = { call: new RawJson('{"a": [1]}'), text: "x".repeat(10) };
  expect((await writeBody(small, 10)).parts).toBe('{"call":{"a":[1]},"text":"xxxxxxxxxx"}');
  const long = `{"a": "${"x".repeat(70_000)}"}`;
  const { parts } = await writeBody({ call: new RawJson(long), other: small.call }, 100_000);
  expect(bytesOf(parts).toString()).toBe(`{"call":${long},"other":{"a": [1]}}`);
});

test("base64 becomes part of a small and of a large body", async () => {
  const value = (units: number) => ({ before: "ä", image: new Base64Json("data:,", "AAAA".repeat(units)), after: 1 });
  expect((await writeBody(value(1), 10)).parts).toBe('{"before":"ä","image":"data:,AAAA","after":1}');
  const { parts, bytes } = await writeBody(value(600_000), 2_400_000);
  const written = bytesOf(parts);
  expect(written.length).toBe(bytes);
  expect(written.equals(Buffer.from(JSON.stringify(value(600_000))))).toBe(true);
});

test("a large body is sent in pieces, with a turn for each", async () => {
  const image = Buffer.alloc(500_000, "any bytes?>");
  const value = {
    text: "é".repeat(200_000),
    base64: new Base64Json("data:,", "A".repeat(300_000)),
    image: new Base64Json("", image),
  };
  const { parts, bytes } = await writeBody(value, 1_000_000);
  const sent: (Buffer | string)[] = [];
  const turns = await turnsOf(async () => {
    if (typeof parts !== "string") for await (const piece of inTurns(parts)) sent.push(piece);
  });
  expect(bytesOf(sent)).toHaveLength(bytes as number);
  expect(bytesOf(sent).equals(Buffer.from(JSON.stringify(value)))).toBe(true);
  expect(Math.max(...sent.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(131_072);
  expect(turns).toBe(sent.length);
});

test("a large conversation arrives unchanged", async () => {
  fake = await FakeUpstream.start();
  const upstream = openRemote(fake.settings());
  const messages = Array.from({ length: 5 }, (_, i) => ({ role: "user" as const, content: `${i}語`.repeat(50_000) }));
  expect((await read(upstream.generate({ ...PROMPT, messages }, NEVER))).text).toBe(DEFAULT_REPLY.pieces.join(""));
  expect(fake.calls[0]?.body.messages).toEqual(messages);
  await upstream.close();
});
