import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Upstream } from "../../src/upstreams/upstream.ts";
import { SUBJECTS } from "./subjects.ts";
import { NEVER, PROMPT, read } from "./support.ts";

describe.each(SUBJECTS)("$name", ({ open }) => {
  let upstream: Upstream;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ upstream, close } = await open());
  });
  afterAll(() => close());

  test("yields non-empty pieces, then one end", async () => {
    const { pieces, done, failure } = await read(upstream.generate(PROMPT, NEVER));
    expect(failure).toBeUndefined();
    expect(pieces.length).toBeGreaterThan(0);
    expect(pieces).not.toContain("");
    expect(["stop", "length"]).toContain(done?.finishReason);
  });

  test("reports whole numbers of tokens", async () => {
    const { done } = await read(upstream.generate(PROMPT, NEVER));
    for (const count of [done?.usage?.input, done?.usage?.output]) {
      expect(count).toSatisfy((value) => Number.isSafeInteger(value) && Number(value) > 0);
    }
  });

  test("throws the reason of a signal that is already aborted", async () => {
    const reason = new Error("aborted before");
    const { failure, pieces } = await read(upstream.generate(PROMPT, AbortSignal.abort(reason)));
    expect(failure).toBe(reason);
    expect(pieces).toEqual([]);
  });

  test("throws the reason of a signal that aborts during the reply", async () => {
    const leaving = new AbortController();
    const reason = new Error("aborted during the reply");
    const events = upstream.generate(PROMPT, leaving.signal)[Symbol.asyncIterator]();
    expect((await events.next()).value.kind).toBe("text");
    leaving.abort(reason);
    await expect(events.next()).rejects.toBe(reason);
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  test("accepts another call after a reader has stopped early", async () => {
    for await (const event of upstream.generate(PROMPT, NEVER)) {
      expect(event.kind).toBe("text");
      break;
    }
    expect((await read(upstream.generate(PROMPT, NEVER))).failure).toBeUndefined();
  });

  test("serves concurrent calls", async () => {
    const replies = await Promise.all(Array.from({ length: 5 }, () => read(upstream.generate(PROMPT, NEVER))));
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(replies.every(({ done }) => done !== undefined)).toBe(true);
  });

  test("has a name without secrets", () => {
    expect(upstream.name).toMatch(/^[\w.:/ -]+$/);
  });
});
