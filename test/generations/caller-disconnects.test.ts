import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { refuse, replyWhen, silent, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../support/fake-upstreams/fake-upstream.ts";
import type { TestKey } from "../support/fixtures.ts";
import { type GenerateOptions, type Generator, generators, useGenerator } from "../support/generators.ts";
import { lockMoney, REQUEST, useOwnMetered } from "../support/metered.ts";

const metered = useOwnMetered({ env: { VX_LOG_LEVEL: "info" } });

const UNTOUCHED = { balance: 1_000, held: 0 };
const DISCONNECTED = expect.stringContaining("(the caller disconnected)");

/** Sets the behaviour of the upstream for the next call, and waits until it has produced this many parts. */
async function seen(behaviour: Behaviour, start: () => void, pieces = 0) {
  const { upstream } = metered;
  const before = upstream.calls.length;
  upstream.next(behaviour);
  start();
  await upstream.until(({ calls }) => (calls[before]?.pieces ?? -1) >= pieces);
  return upstream.calls[before] as (typeof upstream.calls)[number];
}

function codeInLog(requestId: string): unknown {
  const lines = metered.app.logText().split("\n");
  const line = lines.find((text) => text.includes(requestId) && text.includes('"rpc"'));
  return line && (JSON.parse(line) as { code: unknown }).code;
}

const own = useGenerator(metered);
const textOf = {
  unary: async (options: GenerateOptions) => (await own.generate(REQUEST, options)).message?.content,
  stream: async (options: GenerateOptions) => {
    let text = "";
    for await (const { event } of own.stream(REQUEST, options)) if (event.case === "delta") text += event.value.content;
    return text;
  },
};

/** Starts a call; the returned function disconnects. */
function leaving(kind: "unary" | "stream", key: TestKey, headers: Record<string, string> = {}, generator: Generator = own) {
  const left = new AbortController();
  const options = { secret: key.secret, signal: left.signal, headers };
  const ended = async () => {
    if (kind === "unary") await generator.generate(REQUEST, options);
    else for await (const _ of generator.stream(REQUEST, options));
  };
  return { start: () => void ended().catch(() => undefined), leave: () => left.abort() };
}

test.each(generators)(
  "over $name, a disconnect before the first token is charged for the input and cancels the upstream",
  async ({ open }) => {
    const generator = open(metered.app.url);
    const key = await metered.payer(1_000n);
    const { start, leave } = leaving("unary", key, {}, generator);
    const call = await seen(silent, start);
    leave();
    await metered.upstream.until(() => call.ended === "left");
    await metered.settled();
    expect(await metered.rows(key)).toMatchObject([
      { amount: 9, input: 9, output: 0, reason: "Generation with fake: 9 tokens in, 0 tokens out (the caller disconnected)" },
    ]);
    expect(await metered.account(key)).toEqual({ balance: 991, held: 0 });
    generator.close();
  },
);

describe.each(["unary", "stream"] as const)("%s", (kind) => {
  test("a disconnect during the delay before a retry is not charged", async () => {
    const key = await metered.payer(1_000n);
    const { start, leave } = leaving(kind, key);
    const call = await seen(refuse(429, { "retry-after": "2" }), start);
    await metered.upstream.until(() => call.ended === "finished");
    leave();
    await metered.settled();
    expect(await metered.account(key)).toEqual(UNTOUCHED);
    expect(await metered.rows(key)).toEqual([]);
  });

  test("a disconnect during a reply is charged once for the produced output and cancels the upstream", async () => {
    const key = await metered.payer(1_000n);
    const { start, leave } = leaving(kind, key);
    const call = await seen(silentAfter(2), start, 2);
    await metered.metric("vx_running_calls");
    leave();
    await metered.upstream.until(() => call.ended === "left");
    await metered.settled();
    const [row, ...others] = await metered.rows(key);
    expect(row).toMatchObject({ reason: DISCONNECTED, output: 3 });
    expect(others).toEqual([]);
  });

  test("the prompt of a generation that continues without its caller counts until it is settled", async () => {
    const key = await metered.payer(1_000n);
    const { start, leave } = leaving(kind, key, { "idempotency-key": randomUUID() });
    const working = Promise.withResolvers<void>();
    await seen(replyWhen(working.promise), start);
    leave();
    await metered.gone();
    expect(await metered.metric("vx_body_bytes")).toBeGreaterThan(0);
    working.resolve();
    await metered.settled();
    expect(await metered.metric("vx_body_bytes")).toBe(0);
  });

  test("a disconnect after the upstream has reported its usage is charged as reported", async () => {
    const key = await metered.payer(1_000n);
    const { start, leave } = leaving(kind, key);
    const sent = Promise.withResolvers<void>();
    await seen(async (turn) => {
      turn.head();
      await turn.send(turn.whole().replace("data: [DONE]\n\n", ""));
      sent.resolve();
    }, start);
    await sent.promise;
    // Everything sent before this round trip has arrived when it ends.
    await (await fetch(metered.upstream.baseUrl, { method: "POST", body: "{}" })).text();
    leave();
    await metered.settled();
    expect(await metered.rows(key)).toMatchObject([{ reason: DISCONNECTED, input: 11, output: 4 }]);
  });

  test("a disconnect during the hold starts no generation", async () => {
    const key = await metered.payer(1_000n);
    const lock = await lockMoney(metered, key);
    const before = metered.upstream.calls.length;
    const { start, leave } = leaving(kind, key);
    start();
    await lock.wanted();
    leave();
    await metered.gone();
    await lock.free();
    await metered.settled();
    expect(await metered.account(key)).toEqual(UNTOUCHED);
    expect(metered.upstream.calls).toHaveLength(before);
  });

  test("a disconnect during the settlement is charged once for the complete reply", async () => {
    const key = await metered.payer(1_000n);
    const rest = Promise.withResolvers<void>();
    const requestId = `left-${randomUUID()}`;
    const { start, leave } = leaving(kind, key, { "x-request-id": requestId });
    await seen(replyWhen(rest.promise, 4), start, 4);
    const lock = await lockMoney(metered, key);
    rest.resolve();
    await lock.wanted();
    leave();
    await metered.gone();
    await lock.free();
    await metered.settled();
    await expect.poll(() => codeInLog(requestId)).toBe("canceled");
    expect((await metered.rows(key)).map(({ amount, reason }) => ({ amount, reason }))).toEqual([
      { amount: 19, reason: "Generation with fake: 11 tokens in, 4 tokens out" },
    ]);
  });

  test.each([
    ["before the first token", 0],
    ["during the reply", 2],
  ])("with an idempotency key, a retry after a disconnect %s gets the response and is charged once", async (_, pieces) => {
    const key = await metered.payer(1_000n);
    const rest = Promise.withResolvers<void>();
    const headers = { "idempotency-key": "again" };
    const { start, leave } = leaving(kind, key, headers);
    const call = await seen(replyWhen(rest.promise, pieces), start, pieces);
    const calls = metered.upstream.calls.length;
    leave();
    await metered.gone();
    rest.resolve();
    await metered.settled();
    expect(call.ended).toBe("finished");
    expect(await textOf[kind]({ secret: key.secret, headers })).toBe("Hello, world.");
    expect(metered.upstream.calls).toHaveLength(calls);
    expect((await metered.rows(key)).map(({ amount }) => amount)).toEqual([19]);
  });
});

test("a disconnect between the last part and the end is charged for the produced output", async () => {
  const key = await metered.payer(1_000n);
  metered.upstream.next(silentAfter(4));
  let text = "";
  for await (const { event } of own.stream(REQUEST, { secret: key.secret })) {
    if (event.case === "delta") text += event.value.content;
    if (text === "Hello, world.") break;
  }
  await metered.settled();
  expect(await metered.rows(key)).toMatchObject([{ reason: DISCONNECTED, output: 4 }]);
});

test("a disconnect before the end of the request body places no hold", async () => {
  const key = await metered.payer(1_000n);
  const before = metered.upstream.calls.length;
  const { hostname, port } = new URL(metered.app.url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /v1/generate HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key.secret}\r\n` +
      'content-type: application/json\r\ncontent-length: 1000\r\n\r\n{"model":',
  );
  await vi.waitFor(async () => expect(await metered.metric("vx_running_calls")).toBe(1));
  socket.destroy();
  await once(socket, "close");
  await metered.gone();
  expect(await metered.account(key)).toEqual(UNTOUCHED);
  expect(metered.upstream.calls).toHaveLength(before);
});
