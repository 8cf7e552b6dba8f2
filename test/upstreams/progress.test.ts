import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RUNNER_LIMITS, Runner } from "../../src/upstreams/runner/runner.ts";
import { Progress } from "../../src/upstreams/upstream.ts";
import { UpstreamFailure } from "../../src/upstreams/upstream-failure.ts";
import { endAfter, refuse, refuseWithoutEnd, replyWhen, resetAtOnce, silent } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import type { Turn } from "../support/fake-upstreams/turn.ts";
import { NO_USAGE } from "../support/no-usage.ts";
import { createTestRunner, modelOf, type TestRunner } from "./runner-support.ts";
import { callOf, NEVER, openRemote, PROMPT, read, WIRES } from "./support.ts";

let first: FakeUpstream;
let second: FakeUpstream;
let runner: TestRunner;
let progress: Progress;
let leaving: AbortController;

beforeEach(async () => {
  [first, second] = await Promise.all([FakeUpstream.start(), FakeUpstream.start()]);
  progress = new Progress();
  leaving = new AbortController();
  runner = createTestRunner();
});
afterEach(async () => {
  await runner.close();
  await Promise.all([first.stop(), second.stop()]);
});

const model = () => modelOf(first.settings(), second.settings());
const run = () => runner.streamEvents(callOf(model(), { signal: leaving.signal, progress }));

/** Aborts the call and returns whether an upstream was asked at that moment. */
async function leave(outcome: Promise<unknown>): Promise<boolean> {
  leaving.abort(new Error("gone"));
  const { wasSent } = progress;
  await outcome;
  return wasSent;
}

test("wasSent is true once the request was sent", async () => {
  first.next(silent);
  const outcome = read(run());
  expect(progress.wasSent).toBe(false);
  await first.until(({ calls }) => calls.length === 1);
  expect(await leave(outcome)).toBe(true);
});

test("wasSent is false while the call waits for a slot", async () => {
  // One account gets one of the two.
  runner = createTestRunner({ slots: { maxRunning: 2, maxWaiting: 2, maxWaitMs: 60_000 } });
  const gate = Promise.withResolvers<void>();
  first.next(replyWhen(gate.promise));
  const before = read(runner.streamEvents(callOf(model())));
  await first.until(({ calls }) => calls.length === 1);
  const outcome = read(run());
  expect(runner.status()[0]?.waiting).toBe(1);
  expect(await leave(outcome)).toBe(false);
  gate.resolve();
  await before;
});

test("wasSent is false after refused connections", async () => {
  const events = run();
  await Promise.all([first.stop(), second.stop()]);
  await read(events);
  expect(progress.wasSent).toBe(false);
  [first, second] = await Promise.all([FakeUpstream.start(), FakeUpstream.start()]);
});

test.each([
  ["refused", refuse(500)],
  ["reset", resetAtOnce],
  ["ended before its first piece", endAfter(0)],
])("wasSent is false between an attempt that was %s and the next one", async (_, fail) => {
  first.always(fail);
  const sleeping = Promise.withResolvers<void>();
  runner.sleep = (_, signal) => {
    sleeping.resolve();
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  };
  const outcome = read(run());
  await sleeping.promise;
  expect(await leave(outcome)).toBe(false);
});

test("wasSent is false while the body of an error response is read", async () => {
  first.next(refuseWithoutEnd(500));
  const outcome = read(run());
  await first.until(({ calls }) => calls.length === 1);
  await expect.poll(() => progress.wasSent, { interval: 1 }).toBe(false);
  expect(await leave(outcome)).toBe(false);
});

test("wasSent is true at the upstream after a failed one", async () => {
  first.next(refuse(400));
  second.next(silent);
  const outcome = read(run());
  await second.until(({ calls }) => calls.length === 1);
  expect(await leave(outcome)).toBe(true);
});

test("unread holds the received text that was not read before the abort", async () => {
  const taken = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  first.next(async (turn) => {
    turn.head();
    await turn.send(turn.beginning(2));
    await taken.promise;
    await turn.send(turn.make("world"));
    sent.resolve();
  });
  const events = run();
  expect((await events.next()).value).toEqual({ kind: "text", text: "Hello, " });
  taken.resolve();
  await sent.promise;
  // Everything sent before this round trip has arrived when it ends.
  await (await fetch(first.baseUrl, { method: "POST", body: "{}" })).text();
  leaving.abort(new Error("gone"));
  expect(progress.unread).toBe("world");
  await expect(events.next()).rejects.toBe(leaving.signal.reason);
});

describe.each(WIRES.filter(({ contentType }) => !contentType.includes("json")))("the report of $name", (wire) => {
  /** The reports right after an abort, and after a failure of the upstream. */
  async function reportsAfter(textOf: (turn: Turn) => string) {
    const upstream = await FakeUpstream.start({ wire });
    const remote = openRemote(upstream.settings());
    const reports = [];
    for (const isAborted of [true, false]) {
      const left = new AbortController();
      const known = new Progress();
      const gate = Promise.withResolvers<void>();
      upstream.next(async (turn) => {
        turn.head();
        await turn.send(textOf(turn));
        await gate.promise;
        turn.response.destroy();
      });
      const events = remote.generate(PROMPT, isAborted ? left.signal : NEVER, known)[Symbol.asyncIterator]();
      await events.next();
      if (isAborted) left.abort(new Error("gone"));
      const { report } = known;
      gate.resolve();
      await read({ [Symbol.asyncIterator]: () => events });
      reports.push(isAborted ? report : known.report);
    }
    await remote.close();
    await upstream.stop();
    return reports;
  }

  test("is undefined or has the input at the start of a reply", async () => {
    const usage = { ...NO_USAGE, input: 11 };
    const expected = wire.kind === "anthropic" ? { usage, isFinal: false } : undefined;
    expect(await reportsAfter((turn) => turn.beginning(1))).toEqual([expected, expected]);
  });

  test.runIf(wire.kind === "openai")("is not final if it came before the finish reason", async () => {
    const usage = '"usage":{"prompt_tokens":11,"completion_tokens":1}';
    const [aborted] = await reportsAfter((turn) => {
      const first = turn.beginning(1).replace(/(.*)"choices"/s, `$1${usage},"choices"`);
      return first + turn.wire.end({ ...turn.reply, usage: undefined }).replace("data: [DONE]\n\n", "");
    });
    expect(aborted).toEqual({ usage: { ...NO_USAGE, input: 11, output: 1 }, isFinal: false });
  });

  // The API "responses" reports its usage with the last event.
  test.skipIf(wire.kind === "openai-responses")("is final before the last event", async () => {
    const report = { usage: { ...NO_USAGE, input: 11, output: 4 }, isFinal: true };
    const [aborted] = await reportsAfter((turn) => {
      const text = turn.whole();
      return text.slice(0, text.lastIndexOf("\n\n", text.length - 3) + 2);
    });
    expect(aborted).toEqual(report);
  });
});

test("the report of a failed upstream is discarded when another one is asked", async () => {
  const asked = Promise.withResolvers<void>();
  const failing = (known: Progress) => {
    known.report = { usage: NO_USAGE, isFinal: false };
    throw new UpstreamFailure("failed", "no");
  };
  const stubs = new Runner({
    limits: RUNNER_LIMITS,
    open: ({ kind }) => ({
      name: kind,
      async *generate(_prompt, signal, known = new Progress()) {
        if (kind === "openai") failing(known);
        asked.resolve();
        await once(signal, "abort");
        yield { kind: "text", text: "too late" };
      },
      close: async () => undefined,
    }),
    now: () => 0,
    random: () => 0.5,
    sleep: async () => undefined,
    onReport: () => undefined,
  });
  const stubbed = modelOf(first.settings(), { ...second.settings(), kind: "anthropic" });
  await stubs.use([stubbed]);
  const outcome = read(stubs.streamEvents(callOf(stubbed, { signal: leaving.signal, progress })));
  await asked.promise;
  expect(progress.report).toBeUndefined();
  await leave(outcome);
  await stubs.close();
});
