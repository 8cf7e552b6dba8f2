import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Model } from "../../src/domain/model.ts";
import { Breaker } from "../../src/upstreams/breaker.ts";
import { hangUpAfter, refuse, reply, replyWhen, silent } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createTestRunner, modelOf, type TestRunner } from "./runner-support.ts";
import { NEVER, PROMPT, read } from "./support.ts";

const OPEN_MS = 10_000;
const FAILURES = 3;
const LIMITS = { breaker: { failuresMax: FAILURES, openMs: OPEN_MS, longestOpenMs: OPEN_MS } };
const TRIES = 3;

let fake: FakeUpstream;
let runner: TestRunner;
let model: Model;

beforeEach(async () => {
  fake = await FakeUpstream.start();
  runner = createTestRunner(LIMITS);
  model = modelOf(fake.settings());
});
afterEach(async () => {
  await runner.close();
  await fake.stop();
});

const run = (signal = NEVER) => read(runner.run(model, PROMPT, signal));
const state = () => runner.status()[0]?.breaker;

/** The last call that fails finds that out with its first try. */
const CALLS_OF_BREAKING = (FAILURES - 1) * TRIES + 1;

async function breakIt() {
  await runner.use([model]);
  fake.always(refuse(500));
  for (let i = 0; i < FAILURES; i++) await run();
  expect({ state: state(), calls: fake.calls.length }).toEqual({ state: "open", calls: CALLS_OF_BREAKING });
}

test("an upstream that is down is not asked any more", async () => {
  await breakIt();
  const { failure } = await run();
  expect(failure).toMatchObject({ reason: "upstream_error" });
  expect(fake.calls.length).toBe(CALLS_OF_BREAKING);
  expect(runner.outcomes().at(-1)).toBe("down");
});

test("the next upstream is asked instead", async () => {
  await breakIt();
  const second = await FakeUpstream.start();
  model = modelOf(fake.settings(), second.settings());
  expect((await run()).text).toBe("Hello, world.");
  expect([fake.calls.length, second.calls.length]).toEqual([CALLS_OF_BREAKING, 1]);
  await runner.use([]);
  await second.stop();
});

test("after a time one call tries, and all may ask again when that is answered", async () => {
  await breakIt();
  runner.advance(OPEN_MS);
  expect(state()).toBe("half_open");
  const gate = Promise.withResolvers<void>();
  fake.next(async (turn) => {
    await gate.promise;
    await reply()(turn);
  });
  const probe = run();
  await fake.until(({ calls }) => calls.length === CALLS_OF_BREAKING + 1);
  await run();
  expect(fake.calls.length).toBe(CALLS_OF_BREAKING + 1);
  gate.resolve();
  expect((await probe).text).toBe("Hello, world.");
  expect(state()).toBe("closed");
});

test("a probe that fails keeps the others away for as long again", async () => {
  await breakIt();
  runner.advance(OPEN_MS);
  await run();
  expect({ state: state(), calls: fake.calls.length }).toEqual({
    state: "open",
    calls: CALLS_OF_BREAKING + 1,
  });
});

test("a probe that begins well and breaks off does so too", async () => {
  await breakIt();
  runner.advance(OPEN_MS);
  fake.next(hangUpAfter(1));
  expect((await run()).text).toBe("Hello");
  expect(state()).toBe("open");
});

test("a probe whose caller leaves lets another call try", async () => {
  await breakIt();
  runner.advance(OPEN_MS);
  const leaving = new AbortController();
  fake.next(silent, reply());
  const probe = run(leaving.signal);
  await fake.until(({ calls }) => calls.length === CALLS_OF_BREAKING + 1);
  leaving.abort(new Error("gone"));
  await probe;
  expect((await run()).text).toBe("Hello, world.");
});

test("replies that break off count, though each began well", async () => {
  await runner.use([model]);
  fake.always(hangUpAfter(1));
  for (let i = 0; i < 3; i++) await run();
  expect(state()).toBe("open");
});

test("a reply that only a second try began, and that breaks off, takes back no failure", async () => {
  await runner.use([model]);
  for (let i = 0; i < FAILURES; i++) {
    fake.next(refuse(500), hangUpAfter(1));
    await run();
  }
  expect(state()).toBe("open");
});

test("refusals do not: the upstream is there", async () => {
  await runner.use([model]);
  fake.always(refuse(429));
  for (let i = 0; i < 3; i++) await run();
  fake.always(refuse(401));
  for (let i = 0; i < 5; i++) await run();
  expect(state()).toBe("closed");
});

test("successes between failures keep it closed", async () => {
  await runner.use([model]);
  for (let i = 0; i < 5; i++) {
    fake.next(refuse(500), refuse(500));
    expect((await run()).failure).toBeUndefined();
  }
  expect(state()).toBe("closed");
});

test("one call that fails whenever it is tried shuts nobody out", async () => {
  await runner.use([model]);
  fake.always(refuse(500));
  for (let i = 1; i < FAILURES; i++) await run();
  expect({ state: state(), calls: fake.calls.length }).toEqual({
    state: "closed",
    calls: (FAILURES - 1) * TRIES,
  });
});

test("a reply that has begun between failures keeps it closed, also before its end", async () => {
  await runner.use([model]);
  const gate = Promise.withResolvers<void>();
  const fail = async () => {
    fake.next(refuse(500), refuse(500), refuse(500));
    await run();
  };
  for (let i = 1; i < FAILURES; i++) await fail();
  fake.next(replyWhen(gate.promise));
  const events = runner.run(model, PROMPT, NEVER)[Symbol.asyncIterator]();
  await events.next();
  await fail();
  expect(state()).toBe("closed");
  gate.resolve();
  while (!(await events.next()).done);
});

describe("alone", () => {
  test("news from before it opened neither reopens it nor ends the probe", () => {
    let now = 0;
    const breaker = new Breaker(
      { failuresMax: 1, openMs: 100, longestOpenMs: 100 },
      () => now,
      () => 0.5,
    );
    expect(breaker.enter()).toBe("free");
    breaker.fail(false);
    now = 100;
    expect(breaker.enter()).toBe("probe");
    breaker.fail(false);
    breaker.leave(false);
    expect(breaker.enter()).toBe("shut");
    breaker.begin();
    breaker.succeed();
    expect(breaker.enter()).toBe("free");
  });

  test("how long it stays open is spread", () => {
    const times = [0, 0.999].map((random) => {
      let now = 0;
      const breaker = new Breaker(
        { failuresMax: 1, openMs: 100, longestOpenMs: 100 },
        () => now,
        () => random,
      );
      breaker.fail(false);
      while (breaker.state === "open") now++;
      return now;
    });
    expect(times).toEqual([50, 150]);
  });

  test("it stays open twice as long after each probe that fails, up to the longest, and is short again when all is well", () => {
    let now = 0;
    const breaker = new Breaker(
      { failuresMax: 1, openMs: 100, longestOpenMs: 300 },
      () => now,
      () => 0.5,
    );
    const openFor = () => {
      breaker.fail(breaker.enter() === "probe");
      const from = now;
      while (breaker.state === "open") now++;
      return now - from;
    };
    expect([openFor(), openFor(), openFor(), openFor()]).toEqual([100, 200, 300, 300]);
    breaker.succeed();
    expect(openFor()).toBe(100);
  });
});
