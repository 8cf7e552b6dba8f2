import { create, type Message } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { EmbedResponseSchema } from "../../gen/vx/v1/embed_pb.js";
import { hasLongList, writeInParts, writerOf } from "../../src/codec/json/writer.ts";
import { binaryParts, joinShort, lengthOf, type Parts, piecesOf, protoJsonParts } from "../../src/codec/message-parts.ts";
import { turnsOf } from "../support/turns.ts";

const embeddings = (count: number) =>
  create(EmbedResponseSchema, {
    id: "a",
    embeddings: Array.from({ length: count }, (_, index) => ({ index, values: Array(100).fill(index / 7) })),
  });

test("a message is encoded in parts if a list has more than 100 messages", () => {
  expect(hasLongList(EmbedResponseSchema, embeddings(100))).toBe(false);
  expect(hasLongList(EmbedResponseSchema, embeddings(101))).toBe(true);
});

const write = writerOf(EmbedResponseSchema);
const FORMS: Readonly<Record<string, (message: Message) => Parts>> = {
  "REST JSON": (message) => writeInParts(write, EmbedResponseSchema, message),
  ProtoJSON: (message) => protoJsonParts(EmbedResponseSchema, message, {}),
  binary: (message) => binaryParts(EmbedResponseSchema, message),
};

describe.each(Object.entries(FORMS))("%s", (_name, partsOf) => {
  test("pieces have about 64 KiB, and each takes a turn", async () => {
    const parts = () => partsOf(embeddings(1_000));
    const pieces: Buffer[] = [];
    const turns = await turnsOf(async () => {
      for await (const piece of piecesOf(parts())) pieces.push(Buffer.from(piece));
    });
    expect(turns).toBeGreaterThanOrEqual(pieces.length - 1);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(80_000);
    expect(Math.min(...pieces.slice(0, -1).map(({ length }) => length))).toBeGreaterThanOrEqual(65_536);
    const whole = Buffer.concat([...parts()].map((part) => Buffer.from(part)));
    expect(Buffer.concat(pieces).equals(whole)).toBe(true);
    expect(await lengthOf(parts())).toBe(whole.length);
  });

  test("parts are joined if they are short", async () => {
    const short = [...partsOf(embeddings(101))].map((part) => Buffer.from(part));
    expect(await joinShort(partsOf(embeddings(101)))).toEqual(Buffer.concat(short));
    expect(await joinShort(partsOf(embeddings(1_000)))).toBeUndefined();
  });
});

test("only the start of a long message is encoded to find out that it is long", async () => {
  let read = 0;
  function* endless(): Generator<string> {
    for (;;) {
      read++;
      yield "x".repeat(1_000);
    }
  }
  expect(await joinShort(endless())).toBeUndefined();
  expect(read).toBeLessThan(350);
});
