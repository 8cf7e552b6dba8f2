import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Model } from "../../src/domain/model.ts";
import { Breaker } from "../../src/upstreams/breaker.ts";
import { hangUpAfter, refuse, reply, silent } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createTestRunner, modelOf, type TestRunner } from "./runner-support.ts";
import { NEVER, PROMPT, read } from "./support.ts";

const OPEN_MS = 10_000;
const LIMITS = { breaker: { failuresMax: 3, openMs: OPEN_MS } };

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

/** Three tries of one call. */
async function breakIt() {
  await runner.use([model]);
  fake.always(refuse(500));
  await run();
  expect({ state: state(), calls: fake.calls.length }).toEqual({ state: "open", calls: 3 });
}

test("an upstream that is down is not asked any more", async () => {
  await breakIt();
  const { failure } = await run();
  expect(failure).toMatchObject({ reason: "upstream_error" });
  expect(fake.calls.length).toBe(3);
  expect(runner.outcomes().at(-1)).toBe("down");
});

test("the next upstream is asked instead", async () => {
  await breakIt();
  const second = await FakeUpstream.start();
  model = modelOf(fake.settings(), second.settings());
  expect((await run()).text).toBe("Hello, world.");
  expect([fake.calls.length, second.calls.length]).toEqual([3, 1]);
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
  await fake.until(({ calls }) => calls.length === 4);
  await run();
  expect(fake.calls.length).toBe(4);
  gate.resolve();
  expect((await probe).text).toBe("Hello, world.");
  expect(state()).toBe("closed");
});

test("a probe that fails keeps the others away for as long again", async () => {
  await breakIt();
  runner.advance(OPEN_MS);
  await run();
  expect({ state: state(), calls: fake.calls.length }).toEqual({ state: "open", calls: 4 });
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
  await fake.until(({ calls }) => calls.length === 4);
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

describe("alone", () => {
  test("news from before it opened neither reopens it nor ends the probe", () => {
    let now = 0;
    const breaker = new Breaker(
      { failuresMax: 1, openMs: 100 },
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
        { failuresMax: 1, openMs: 100 },
        () => now,
        () => random,
      );
      breaker.fail(false);
      while (breaker.state === "open") now++;
      return now;
    });
    expect(times).toEqual([50, 150]);
  });
});
