import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DomainError } from "../../src/domain/errors.ts";
import type { Model } from "../../src/domain/model.ts";
import type { RunnerLimits } from "../../src/upstreams/runner/runner.ts";
import {
  errorInside,
  hangUpAfter,
  raw,
  refuse,
  reply,
  replyAndClose,
  replyWhen,
  resetAtOnce,
  silent,
  silentAfter,
} from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { promptOf } from "../support/samples.ts";
import { createTestRunner, modelOf, type TestRunner } from "./runner-support.ts";
import { callOf, NEVER, read } from "./support.ts";

let first: FakeUpstream;
let second: FakeUpstream;
let runner: TestRunner;
let model: Model;

beforeEach(async () => {
  [first, second] = await Promise.all([FakeUpstream.start(), FakeUpstream.start()]);
  second.always(reply({ pieces: ["from the second"] }));
  model = modelOf(first.settings(), second.settings());
  await start();
});
afterEach(async () => {
  await runner.close();
  await Promise.all([first.stop(), second.stop()]);
});

async function start(limits: Partial<RunnerLimits> = {}): Promise<void> {
  await runner?.close();
  runner = createTestRunner(limits);
  await runner.use([model]);
}

const run = (signal = NEVER, asked = model) => read(runner.streamEvents(callOf(asked, { signal })));
const runFor = (accountId: string, signal = NEVER) => read(runner.streamEvents(callOf(model, { accountId, signal })));
const reasonOf = (failure: unknown) => (failure instanceof DomainError ? failure.reason : failure);
const counts = () => [first.calls.length, second.calls.length];

describe("before the first piece", () => {
  test("a working upstream gets one request, and no other upstream gets any", async () => {
    expect(await run()).toMatchObject({ text: "Hello, world.", done: { finishReason: "stop" } });
    expect(counts()).toEqual([1, 0]);
    expect(runner.outcomes()).toEqual(["ok"]);
  });

  test("an upstream that cannot get the prompt is not used", async () => {
    model = modelOf({ ...first.settings(), kind: "anthropic" }, second.settings());
    await start();
    const prompt = promptOf({ options: { seed: 1 } });
    expect(await read(runner.streamEvents(callOf(model, { prompt })))).toMatchObject({ text: "from the second" });
    expect(counts()).toEqual([0, 1]);
  });

  test.each([
    ["429", refuse(429), "rate_limited"],
    ["500", refuse(500), "failed"],
    ["a reset", resetAtOnce, "dropped"],
    ["a disconnect after the headers", hangUpAfter(0), "dropped"],
    ["an error inside a 200", errorInside(0), "failed"],
  ])("%s is retried at the same upstream", async (_, behaviour, outcome) => {
    first.next(behaviour, behaviour);
    expect((await run()).text).toBe("Hello, world.");
    expect(counts()).toEqual([3, 0]);
    expect(runner.outcomes()).toEqual([outcome, outcome, "ok"]);
  });

  test.each([
    ["400", refuse(400), "rejected"],
    ["401", refuse(401), "rejected"],
    ["an unreadable response", raw("<p>", { "content-type": "text/html" }), "garbled"],
    ["a Retry-After that is too long", refuse(429, { "retry-after": "60" }), "rate_limited"],
  ])("%s moves the call to the next upstream at once", async (_, behaviour, outcome) => {
    first.next(behaviour);
    expect((await run()).text).toBe("from the second");
    expect(counts()).toEqual([1, 1]);
    expect(runner.outcomes()).toEqual([outcome, "ok"]);
    expect(runner.sleeps).toEqual([]);
  });

  test("no response within timeout_ms moves the call to the next upstream, and models that differ in it have each their own", async () => {
    first.always(silent);
    const patient = modelOf(first.settings());
    const impatient = modelOf(first.settings({ timeoutMs: 500 }), second.settings());
    await runner.use([patient, impatient]);
    const leaving = new AbortController();
    const waiting = run(leaving.signal, patient);
    expect((await run(NEVER, impatient)).text).toBe("from the second");
    expect(counts()).toEqual([2, 1]);
    leaving.abort(new Error("gone"));
    expect((await waiting).failure).toBe(leaving.signal.reason);
  });

  test("three failed attempts move the call to the next upstream", async () => {
    first.always(refuse(503));
    expect((await run()).text).toBe("from the second");
    expect(counts()).toEqual([3, 1]);
  });

  test("the waits between attempts grow, and include Retry-After", async () => {
    first.always(refuse(503));
    await run();
    expect(runner.sleeps).toEqual([75, 150]);
    first.always(refuse(429, { "retry-after": "2" }));
    await run();
    expect(runner.sleeps.slice(2)).toEqual([2_075, 2_150]);
  });

  test("when all fail, the caller gets a general error and the log gets the cause", async () => {
    const message = `no model at ${second.baseUrl}`;
    first.always(refuse(500));
    second.always(refuse(404, {}, JSON.stringify({ error: { message } })));
    const { failure, pieces } = await run();
    expect(reasonOf(failure)).toBe("upstream_error");
    expect((failure as Error).message).toBe(new DomainError("upstream_error").message);
    expect((failure as Error).cause).toMatchObject({ message: `the upstream responded with 404: ${message}` });
    expect(pieces).toEqual([]);
    expect(counts()).toEqual([3, 1]);
  });
});

describe("after the first piece", () => {
  test("a failure ends the call without failover", async () => {
    first.next(hangUpAfter(2));
    const { text, failure, done } = await run();
    expect([text, reasonOf(failure), done]).toEqual(["Hello, ", "upstream_error", undefined]);
    expect((failure as Error).cause).toMatchObject({ kind: "dropped" });
    expect(counts()).toEqual([1, 0]);
    expect(runner.outcomes()).toEqual(["dropped"]);
  });
});

describe("an aborted call", () => {
  test.each([
    ["before the response", silent],
    ["during the reply", silentAfter(1)],
  ])("%s is aborted at the upstream and releases its slot at once", async (_, behaviour) => {
    const leaving = new AbortController();
    const reason = new DomainError("deadline_exceeded");
    first.next(behaviour);
    const outcome = run(leaving.signal);
    await first.until(({ calls }) => calls.length === 1);
    leaving.abort(reason);
    expect((await outcome).failure).toBe(reason);
    expect(runner.status()[0]?.running).toBe(0);
    await first.until(({ calls }) => calls[0]?.ended === "left");
    expect(runner.outcomes()).toEqual(["cancelled"]);
    expect(counts()).toEqual([1, 0]);
  });

  test("between two attempts sends no further request", async () => {
    const leaving = new AbortController();
    first.always(refuse(500));
    runner.sleep = (_, signal) => {
      leaving.abort(new Error("gone"));
      signal.throwIfAborted();
      return Promise.resolve();
    };
    expect((await run(leaving.signal)).failure).toBe(leaving.signal.reason);
    expect(counts()).toEqual([1, 0]);
  });

  test("with a signal that is already aborted sends no request", async () => {
    const { failure } = await run(AbortSignal.abort(new Error("gone")));
    expect(failure).toEqual(new Error("gone"));
    expect(counts()).toEqual([0, 0]);
  });

  test.each([
    ["while waiting for the first piece", silent, 0],
    ["while waiting for the next piece", silentAfter(1), 1],
  ])("a reader that stops %s ends the call at once", async (_, behaviour, pieces) => {
    first.next(behaviour);
    const events = runner.streamEvents(callOf(model));
    for (let i = 0; i < pieces; i++) expect((await events.next()).done).toBe(false);
    const waiting = events.next();
    await first.until(({ calls }) => calls.length === 1);
    await events.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(runner.status()[0]?.running).toBe(0);
    await first.until(({ calls }) => calls[0]?.ended === "left");
    expect(runner.outcomes()).toEqual(["cancelled"]);
  });

  test("a reader that stops between pieces or at the end releases its slot", async () => {
    first.next(silentAfter(1));
    for await (const _ of runner.streamEvents(callOf(model))) break;
    for await (const event of runner.streamEvents(callOf(model))) if (event.kind === "done") break;
    expect(runner.status()[0]?.running).toBe(0);
    expect(runner.outcomes()).toEqual(["cancelled", "ok"]);
  });
});

test("no call fails when the upstream closes connections between calls", async () => {
  first.always(replyAndClose);
  for (let i = 0; i < 30; i++) expect((await run()).text).toBe("Hello, world.");
});

/** One account gets 7 of 8 slots. */
const SLOTS = { maxRunning: 16, maxWaiting: 80, maxWaitMs: 60_000 };
const OF_ONE_ACCOUNT = 14;

describe("slots", () => {
  /** Starts a call that gets its reply when the gate opens. */
  const runOne = async () => {
    const gate = Promise.withResolvers<void>();
    first.next(replyWhen(gate.promise));
    const one = run();
    await first.until(({ calls }) => calls.length === 1);
    return { one, gate };
  };

  test("the queue has room for another account, however many calls of one account wait", async () => {
    await start({ slots: { ...SLOTS, maxWaiting: 16 } });
    const gate = Promise.withResolvers<void>();
    first.always(replyWhen(gate.promise));
    model = modelOf(first.settings());
    const attack = Array.from({ length: 3 * OF_ONE_ACCOUNT }, () => runFor("acct_attacker"));
    await first.until(({ calls: { length } }) => length === OF_ONE_ACCOUNT);
    const honest = [runFor("acct_honest"), runFor("acct_honest")];
    await first.until(({ calls: { length } }) => length === OF_ONE_ACCOUNT + 1);
    expect(runner.status()[0]).toMatchObject({ running: OF_ONE_ACCOUNT + 1, waiting: OF_ONE_ACCOUNT + 1 });
    gate.resolve();
    for (const { text } of await Promise.all(honest)) expect(text).toBe("Hello, world.");
    const refused = (await Promise.all(attack)).filter(({ failure }) => failure !== undefined);
    expect(refused.map(({ failure }) => reasonOf(failure))).toEqual(Array(OF_ONE_ACCOUNT).fill("overloaded"));
  });

  test("a full queue moves the call to the next upstream; if all are full, the call is overloaded", async () => {
    await start({ slots: { maxRunning: 2, maxWaiting: 0, maxWaitMs: 60_000 } });
    const gate = Promise.withResolvers<void>();
    first.always(replyWhen(gate.promise));
    second.always(replyWhen(gate.promise));
    const one = run();
    await first.until(({ calls }) => calls.length === 1);
    const other = run();
    await second.until(({ calls }) => calls.length === 1);
    expect(reasonOf((await run()).failure)).toBe("overloaded");
    expect(counts()).toEqual([1, 1]);
    gate.resolve();
    expect((await one).failure ?? (await other).failure).toBeUndefined();
    expect(runner.outcomes()).toEqual(["busy", "busy", "busy", "ok", "ok"]);
  });

  test("a wait of maxWaitMs moves the call to the next upstream", async () => {
    await start({ slots: { maxRunning: 2, maxWaiting: 2, maxWaitMs: 5 } });
    const { one, gate } = await runOne();
    expect((await run()).text).toBe("from the second");
    gate.resolve();
    expect((await one).text).toBe("Hello, world.");
  });

  test("a call aborted while waiting takes no slot", async () => {
    await start({ slots: { maxRunning: 2, maxWaiting: 2, maxWaitMs: 60_000 } });
    const leaving = new AbortController();
    const { one, gate } = await runOne();
    const other = run(leaving.signal);
    leaving.abort(new Error("gone"));
    expect((await other).failure).toEqual(new Error("gone"));
    gate.resolve();
    await one;
    expect(runner.status()[0]).toMatchObject({ running: 0, waiting: 0 });
    expect(counts()).toEqual([1, 0]);
  });
});

describe("with weights", () => {
  const weighted = () => modelOf(first.settings(), second.settings({ weight: 1 }), second.settings({ model: "b", weight: 1 }));

  test("calls with the same idempotency key use the same upstream, other calls use both", async () => {
    model = weighted();
    await start();
    const modelFor = async (idempotencyKey: string) => {
      await read(runner.streamEvents(callOf(model, { idempotencyKey })));
      return second.calls.at(-1)?.body.model;
    };
    const seen = new Set<unknown>();
    for (let i = 0; i < 20; i++) {
      const used = await modelFor(`key ${i}`);
      expect(await modelFor(`key ${i}`)).toBe(used);
      seen.add(used);
    }
    expect(seen).toEqual(new Set(["fake-model", "b"]));
    expect(first.calls).toHaveLength(0);
  });

  test("a failure is followed by the rest of the group, then by the upstreams without a weight", async () => {
    model = weighted();
    await start();
    second.always(refuse(400));
    expect(await read(runner.streamEvents(callOf(model, { idempotencyKey: "1" })))).toMatchObject({ text: "Hello, world." });
    expect(new Set(second.calls.map(({ body }) => body.model))).toEqual(new Set(["fake-model", "b"]));
    expect(first.calls).toHaveLength(1);
  });
});
