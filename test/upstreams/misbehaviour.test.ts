import { describe, expect, test } from "vitest";
import {
  endAfter,
  errorInside,
  gzipped,
  hangUpAfter,
  onlyInterim,
  raw,
  refuse,
  refuseWithoutEnd,
  reply,
  replyAndClose,
  replyAndEndWhen,
  resetAtOnce,
  silent,
} from "../support/fake-upstreams/behaviours.ts";
import { type Behaviour, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { openaiJsonWire, openaiWire } from "../support/fake-upstreams/wire.ts";
import { NO_USAGE } from "../support/no-usage.ts";
import { kindOf, NEVER, openRemote, PROMPT, read, useFake, WIRES } from "./support.ts";

const GOOD = { failure: undefined, text: "Hello, world." };

/** The behaviour is a failure of this kind, without a piece, and the next call gets a reply. */
async function expectFailure({ state, ask }: ReturnType<typeof useFake>, behaviour: Behaviour, kind: string): Promise<void> {
  const { failure, pieces } = await ask(behaviour);
  expect(kindOf(failure)).toBe(kind);
  expect(pieces).toEqual([]);
  expect(state.fake.calls.length).toBe(1);
  expect(await ask(reply())).toMatchObject(GOOD);
}

describe.each(WIRES)("$name", (wire) => {
  const fake = useFake(wire);
  const { state, ask } = fake;
  const isJson = wire.contentType.includes("json");

  test("a valid reply is read with its finish reason and its usage", async () => {
    expect(await ask(reply())).toMatchObject({ ...GOOD, done: { finishReason: "stop", usage: { input: 11, output: 4 } } });
    expect(await ask(reply({ finishReason: "length" }))).toMatchObject({ done: { finishReason: "length" } });
  });

  test("an empty reply is valid", async () => {
    expect(await ask(reply({ pieces: [] }))).toMatchObject({ failure: undefined, pieces: [] });
  });

  test("missing or impossible usage is reported as undefined", async () => {
    // biome-ignore format: a few lines
    const absurd: [input: unknown, output: unknown][] = [
      [-1, 4], [11, -1], [11, 4.5], [1e300, 4], [11, 2 ** 53], ["11", "4"], [null, null], [undefined, 4], [[11], { value: 4 }],
      [true, false], [0, 0],
    ];
    for (const usage of [undefined, ...absurd.map(([input, output]) => ({ input, output }))]) {
      const { failure, done } = await ask(reply({ usage }));
      expect({ usage, failure, reported: done?.usage }).toEqual({ usage, failure: undefined, reported: undefined });
    }
    const { done } = await ask(reply({ usage: { input: 0, output: 4 } }));
    expect(done?.usage).toEqual({ ...NO_USAGE, output: 4 });
  });

  test.each<[what: string, behaviour: Behaviour, kind: string]>([
    ["a response that ends before the reply", endAfter(0), isJson ? "garbled" : "dropped"],
    ["an error inside a 200", errorInside(0), "failed"],
    ["an error about the request inside a 200", errorInside(0, "invalid_request_error"), "rejected"],
    ["malformed JSON", raw(isJson ? '{"choices":[' : 'data: {"choices":[\n\n'), "garbled"],
    ["JSON of another type", raw(isJson ? "[1]" : "data: 17\n\n"), "garbled"],
    ["an empty body", raw(""), isJson ? "garbled" : "dropped"],
  ])("%s is a failure", async (_, behaviour, kind) => expectFailure(fake, behaviour, kind));

  test("the failure message contains no key and is truncated", async () => {
    const apiKey = "secret-of-the-operator";
    const keyed = openRemote(state.fake.settings({ apiKeyEnv: "KEY" }), { KEY: apiKey });
    const message = `wrong key ${apiKey} or sk-abcdefgh or Bearer zzz ${"long ".repeat(1_000)}`;
    state.fake.next(refuse(401, {}, JSON.stringify({ error: { type: "t", code: "c", message } })));
    const { failure } = await read(keyed.generate(PROMPT, NEVER));
    const text = (failure as Error).message;
    expect(text).toMatch(/^the upstream responded with 401: t, c, wrong key \[redacted\] or \[redacted\] or \[redacted\]/);
    expect(text.length).toBeLessThanOrEqual(400);
    await keyed.close();
  });
});

/** What HTTP carries is the same for every kind of upstream; streams and whole replies are read in different ways. */
describe.each([openaiWire, openaiJsonWire])("HTTP: $name", (wire) => {
  const fake = useFake(wire);
  const { state, ask } = fake;
  const isJson = wire.contentType.includes("json");

  // The status is read before the body.
  const statuses: [what: string, behaviour: Behaviour, kind: string][] = [
    ["a redirect", refuse(307, { location: "/v1/elsewhere" }), "rejected"],
    ["a 204", refuse(204), "rejected"],
    ["400", refuse(400), "rejected"],
    ["401", refuse(401), "rejected"],
    ["404", refuse(404), "rejected"],
    ["408", refuse(408), "failed"],
    ["429", refuse(429), "rate_limited"],
    ["500", refuse(500), "failed"],
    ["529", refuse(529), "failed"],
    ["500 with a body of 100 kB", refuse(500, {}, "x".repeat(100_000)), "failed"],
    ["500 with a body that does not end", refuseWithoutEnd(500), "failed"],
  ];

  test.each<[what: string, behaviour: Behaviour, kind: string]>([
    ...(isJson ? [] : statuses),
    ["a reset instead of a response", resetAtOnce, "dropped"],
    ["a disconnect during the response", hangUpAfter(0), "dropped"],
    ["bytes instead of text", raw(Buffer.from([0xff, 0xfe, 0, 1, 0x0a, 0x0a, 0xc0])), isJson ? "garbled" : "dropped"],
    ["an HTML page", raw("<html></html>", { "content-type": "text/html" }), "garbled"],
    ["no content type", raw("{}", { "content-type": "" }), "garbled"],
    ["a compressed response", gzipped, "garbled"],
  ])("%s is a failure", async (_, behaviour, kind) => expectFailure(fake, behaviour, kind));

  test.each([
    ["without a response", silent],
    ["with interim responses only", onlyInterim],
  ])("a call %s ends after timeout_ms", async (_, behaviour) => {
    const impatient = openRemote(state.fake.settings({ timeoutMs: 300 }));
    state.fake.next(behaviour);
    expect(kindOf((await read(impatient.generate(PROMPT, NEVER))).failure)).toBe("timeout");
    await state.fake.until(({ calls }) => calls[0]?.ended === "left");
    await impatient.close();
  });

  test("a refused connection is a failure", async () => {
    await state.fake.stop();
    expect(kindOf((await read(state.upstream.generate(PROMPT, NEVER))).failure)).toBe("unreachable");
    state.fake = await FakeUpstream.start({ wire });
  });

  test("Retry-After is read if it is a number of seconds", async () => {
    for (const [value, ms] of [
      ["2", 2_000],
      ["0", 0],
      ["-1", undefined],
      ["soon", undefined],
      ["1e9", undefined],
    ] as const) {
      const { failure } = await ask(refuse(429, { "retry-after": value }));
      expect(failure).toMatchObject({ kind: "rate_limited", retryAfterMs: ms });
    }
  });

  test("a connection is reused if the reader stops at the end of the reply", async () => {
    for (let i = 0; i < 20; i++) {
      state.fake.next(reply());
      for await (const event of state.upstream.generate(PROMPT, NEVER)) if (event.kind === "done") break;
    }
    // The reply ends before its response does: the connection may still be busy when the next call starts.
    expect(state.fake.connections).toBeLessThanOrEqual(2);
  });

  test("a connection that the upstream closed between calls is not reused", async () => {
    for (let i = 0; i < 5; i++) {
      expect(await ask(replyAndClose)).toMatchObject(GOOD);
      await state.fake.until(({ openConnections }) => openConnections === 0);
    }
  });

  describe.skipIf(isJson)("a response that ends after the reply", () => {
    test("is limited in size, even while the reader has not taken the end of the reply", async () => {
      const garbage = `: ${"g".repeat(65_000)}\n\n`;
      let sent = 0;
      state.fake.next(async (turn) => {
        turn.head();
        let isOpen = await turn.send(turn.whole());
        for (; isOpen && sent < 64 * 1_048_576; sent += garbage.length) isOpen = await turn.send(garbage);
      });
      const events = state.upstream.generate(PROMPT, NEVER);
      const iterator = events[Symbol.asyncIterator]();
      await iterator.next();
      await state.fake.until(({ calls }) => calls[0]?.ended !== "running");
      expect(state.fake.calls[0]?.ended).toBe("left");
      expect(sent).toBeLessThan(16 * 1_048_576);
      expect(await read({ [Symbol.asyncIterator]: () => iterator })).toMatchObject({ failure: undefined, done: {} });
    });

    test("is awaited, and its connection is reused", async () => {
      const gate = Promise.withResolvers<void>();
      state.fake.next(replyAndEndWhen(gate.promise));
      for await (const event of state.upstream.generate(PROMPT, NEVER)) if (event.kind === "done") break;
      expect(await ask(reply())).toMatchObject(GOOD);
      gate.resolve();
      await state.fake.until(({ calls }) => calls[0]?.ended !== "running");
      expect([state.fake.connections, state.fake.openConnections]).toEqual([2, 2]);
    });

    test("is aborted after a timeout", async () => {
      expect(await ask(replyAndEndWhen(new Promise(() => undefined)))).toMatchObject(GOOD);
      await state.fake.until(({ calls }) => calls[0]?.ended === "left");
    });
  });
});
