import { describe, expect, test } from "vitest";
import {
  byteByByte,
  endAfter,
  errorInside,
  flood,
  hangUpAfter,
  raw,
  reply,
  silent,
  silentAfter,
} from "../support/fake-upstreams/behaviours.ts";
import { type Behaviour, DEFAULT_REPLY } from "../support/fake-upstreams/fake-upstream.ts";
import type { Turn } from "../support/fake-upstreams/turn.ts";
import { openaiWire, type Wire } from "../support/fake-upstreams/wire.ts";
import { kindOf, NEVER, openRemote, PROMPT, read, STREAMED_WIRES, useFake } from "./support.ts";

/** Characters of every length in UTF-8. */
const CHARACTERS = ["a", "é", "語", "😀", "👩‍👩‍👧", "\u2028", '\\n"\n'];

const wholeOf = (wire: Wire) =>
  wire.begin(DEFAULT_REPLY) + DEFAULT_REPLY.pieces.map(wire.piece).join("") + wire.end(DEFAULT_REPLY);

describe.each(STREAMED_WIRES)("$name", (wire) => {
  const { state, ask } = useFake(wire);
  const whole = wholeOf(wire);

  test.each<[what: string, behaviour: Behaviour, kind: string]>([
    ["the response ends", endAfter(2), "dropped"],
    ["the connection ends", hangUpAfter(2), "dropped"],
    ["an error is reported", errorInside(2), "failed"],
  ])("received text is delivered before the failure when %s", async (_, behaviour, kind) => {
    const { text, failure, done } = await ask(behaviour);
    expect({ text, kind: kindOf(failure), done }).toEqual({ text: "Hello, ", kind, done: undefined });
  });

  // In the Responses API, one event has the finish reason and ends the reply.
  test.skipIf(wire.kind === "openai-responses")(
    "a reply with a finish reason is complete, however the response ends",
    async () => {
      const last = wire.end({ ...DEFAULT_REPLY, finishReason: "length" }).split("\n\n");
      const withFinishReason = whole.replace(wire.end(DEFAULT_REPLY), `${last.slice(0, -2).join("\n\n")}\n\n`);
      expect(await ask(raw(withFinishReason))).toMatchObject({ failure: undefined, done: { finishReason: "length" } });
    },
  );

  test("a reader that stops ends the request at the upstream", async () => {
    state.fake.next(silentAfter(1));
    for await (const _ of state.upstream.generate(PROMPT, NEVER)) break;
    await state.fake.until(({ calls }) => calls[0]?.ended === "left");
    expect(state.fake.executions.length).toBe(1);
  });

  test("pieces smaller than tokens are not truncated", async () => {
    const pieces = [..."Sixty letters, each in a piece of its own, are fifteen tokens"];
    const { text, done } = await ask(reply({ pieces }), { ...PROMPT, maxTokens: 15 });
    expect({ text, reason: done?.finishReason }).toEqual({ text: pieces.join(""), reason: "stop" });
  });
});

/** The format of the events, aborts and limits are the same for every kind of upstream. */
describe("every stream", () => {
  const wire = openaiWire;
  const { state, ask } = useFake(wire);
  const whole = wholeOf(wire);

  test("a reset during the reply is a failure after the received text", async () => {
    state.fake.next(silentAfter(2));
    const events = state.upstream.generate(PROMPT, NEVER)[Symbol.asyncIterator]();
    expect((await events.next()).value).toEqual({ kind: "text", text: "Hello, " });
    state.fake.cutConnections();
    await expect(events.next()).rejects.toMatchObject({ kind: "dropped" });
  });

  test("a reply without further data ends after timeout_ms", async () => {
    const impatient = openRemote(state.fake.settings({ timeoutMs: 300 }));
    state.fake.next(silentAfter(2));
    const { text, failure } = await read(impatient.generate(PROMPT, NEVER));
    expect({ text, kind: kindOf(failure) }).toEqual({ text: "Hello, ", kind: "timeout" });
    await state.fake.until(({ calls }) => calls[0]?.ended === "left");
    await impatient.close();
  });

  test("characters may be split into single bytes", async () => {
    expect((await ask(byteByByte({ pieces: CHARACTERS }))).text).toBe(CHARACTERS.join(""));
  });

  test("line ends, comments, unknown events and a byte order mark follow the event stream format", async () => {
    for (const body of [
      whole.replaceAll("\n", "\r\n"),
      whole.replaceAll("\n", "\r"),
      `\ufeff${whole.slice(wire.begin(DEFAULT_REPLY).length)}`,
      `: hello\n\n${whole.replaceAll("\n\n", "\n\n: still here\n\n")}`,
      `retry: 1\nid: 2\nunknown\n\nevent: news\ndata: {"type":"news"}\n\n${whole}`,
    ]) {
      expect(await ask(raw(body))).toMatchObject({ failure: undefined, text: "Hello, world." });
    }
  });

  test("an abort ends the request at the upstream at once, or prevents it", async () => {
    const reason = new Error("gone before");
    expect(await read(state.upstream.generate(PROMPT, AbortSignal.abort(reason)))).toMatchObject({ failure: reason, pieces: [] });
    for (const behaviour of [silent, silentAfter(0), silentAfter(1)]) {
      const leaving = new AbortController();
      state.fake.next(behaviour);
      const calls = state.fake.calls.length;
      const outcome = read(state.upstream.generate(PROMPT, leaving.signal));
      await state.fake.until(() => state.fake.calls.length > calls);
      leaving.abort(new Error("gone"));
      expect((await outcome).failure).toBe(leaving.signal.reason);
      await state.fake.until(() => state.fake.calls.at(-1)?.ended === "left");
    }
  });

  test("a reply that exceeds max_tokens is truncated", async () => {
    const endless = flood((turn: Turn) => turn.make("word "), 1e9, wire.begin(DEFAULT_REPLY));
    const { text, done, failure } = await ask(endless, { ...PROMPT, maxTokens: 10 });
    expect({ done, failure }).toEqual({ done: { kind: "done", finishReason: "length", usage: undefined }, failure: undefined });
    expect(text.length).toBeLessThanOrEqual(10 * 8 + "word ".length);
    await state.fake.until(({ calls }) => calls[0]?.ended === "left");
  });

  test("one piece that exceeds max_tokens is truncated", async () => {
    const { text, done } = await ask(reply({ pieces: ["x", "😀".repeat(10_000)] }), { ...PROMPT, maxTokens: 10 });
    expect(done).toMatchObject({ finishReason: "length", usage: { input: 11, output: 4 } });
    expect(text.length).toBeLessThanOrEqual(1_024 + 1_280);
    expect(text.isWellFormed()).toBe(true);
  });
});
