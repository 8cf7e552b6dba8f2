import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Model } from "../../src/domain/model.ts";
import { Breaker, type Pass } from "../../src/upstreams/runner/breaker.ts";
import { UpstreamFailure } from "../../src/upstreams/runner/failure.ts";
import {
  hangUpAfter,
  refuse,
  reply,
  replyWhen,
  resetAtOnce,
  silent,
} from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createTestRunner, modelOf, type TestRunner } from "./runner-support.ts";
import { callOf, NEVER, read } from "./support.ts";

const OPEN_MS = 10_000;
const PROOF_MS = 1_000;
const FAILURES = 3;
const LIMITS = {
  breaker: { maxFailures: FAILURES, proofMs: PROOF_MS, openMs: OPEN_MS, maxOpenMs: 4 * OPEN_MS },
};
const ATTEMPTS = 3;

let fake: FakeUpstream;
let runner: TestRunner;
let model: Model;

beforeEach(async () => {
  fake = await FakeUpstream.start();
  runner = createTestRunner(LIMITS);
  model = modelOf(fake.settings());
  await runner.use([model]);
});
afterEach(async () => {
  await runner.close();
  await fake.stop();
});

const run = (accountId = "acct_1", signal = NEVER) => read(runner.run(callOf(model, { accountId, signal })));
const state = () => runner.status()[0]?.breaker;
const openAccounts = () => runner.status()[0]?.openAccounts;
const TEXT = "Hello, world.";

/** One call that fails with its first attempt, and with every other one. */
async function fail(accountId = "acct_1", behaviour = refuse(500)) {
  fake.next(behaviour, behaviour, behaviour);
  expect((await run(accountId)).failure).toMatchObject({ reason: "upstream_error" });
  // An account that may not try again leaves some of them.
  fake.forgetNext();
}

/** Failures of several accounts, after which no account may ask. */
async function breakIt() {
  for (let i = 0; i < FAILURES; i++) await fail(`acct_failing_${i}`);
  expect(state()).toBe("open");
}

describe("failures of one account", () => {
  test("never keep another account away, however many they are", async () => {
    fake.always(refuse(500));
    for (let i = 0; i < 50; i++) await run("acct_attacker");
    fake.always(reply());
    expect((await run("acct_honest")).text).toBe(TEXT);
    expect([state(), openAccounts()]).toEqual(["closed", 1]);
  });

  test.each([
    ["500", refuse(500)],
    ["a reset", resetAtOnce],
    ["a reply that breaks off", hangUpAfter(1)],
    ["silence", silent],
  ])("of fewer accounts than the limit keep no other away: %s", async (_, behaviour) => {
    model = modelOf(fake.settings({ timeoutMs: 20 }));
    await runner.use([model]);
    fake.always(behaviour);
    const attackers = Array.from({ length: 3 * FAILURES }, (_, i) => `acct_attacker_${i % (FAILURES - 1)}`);
    await Promise.all(attackers.map((accountId) => run(accountId)));
    fake.always(reply());
    expect((await run("acct_honest")).text).toBe(TEXT);
    expect(openAccounts()).toBe(FAILURES - 1);
  });

  test("keep that account away until its own probe is answered", async () => {
    for (let i = 0; i < FAILURES; i++) await fail();
    const { length } = fake.calls;
    expect((await run()).failure).toMatchObject({ reason: "upstream_error" });
    expect([fake.calls.length, runner.outcomes().at(-1)]).toEqual([length, "down"]);
    runner.advance(OPEN_MS);
    expect((await run()).text).toBe(TEXT);
    expect((await run()).text).toBe(TEXT);
    expect(openAccounts()).toBe(0);
  });

  test("that its own probe repeats keep it away for twice as long", async () => {
    for (let i = 0; i < FAILURES; i++) await fail();
    runner.advance(OPEN_MS);
    await fail();
    runner.advance(2 * OPEN_MS - 1);
    expect((await run()).failure).toBeDefined();
    runner.advance(1);
    expect((await run()).text).toBe(TEXT);
  });

  test("count once for each call, however often it is tried", async () => {
    fake.always(refuse(500));
    for (let i = 1; i < FAILURES; i++) await run();
    expect([openAccounts(), fake.calls.length]).toEqual([0, (FAILURES - 1) * ATTEMPTS]);
  });

  test("count although each reply began well", async () => {
    for (let i = 0; i < FAILURES; i++) await fail("acct_1", hangUpAfter(1));
    expect(openAccounts()).toBe(1);
  });

  test("count after a reply that only a second attempt began, and that broke off", async () => {
    for (let i = 0; i < FAILURES; i++) {
      fake.next(refuse(500), hangUpAfter(1));
      await run();
    }
    expect(openAccounts()).toBe(1);
  });

  test("do not count before a whole reply", async () => {
    for (let i = 0; i < 5; i++) {
      fake.next(refuse(500), refuse(500));
      expect((await run()).text).toBe(TEXT);
    }
    expect(openAccounts()).toBe(0);
  });

  test("do not count before a reply that has begun and has not ended", async () => {
    const gate = Promise.withResolvers<void>();
    for (let i = 1; i < FAILURES; i++) await fail();
    fake.next(replyWhen(gate.promise));
    const events = runner.run(callOf(model));
    await events.next();
    await fail();
    expect(openAccounts()).toBe(0);
    gate.resolve();
    while (!(await events.next()).done);
  });

  test("are no refusals: an upstream that refuses answers", async () => {
    fake.always(refuse(429));
    for (let i = 0; i < FAILURES; i++) await run();
    fake.always(refuse(401));
    for (let i = 0; i < FAILURES; i++) await run();
    expect([state(), openAccounts()]).toEqual(["closed", 0]);
  });

  test("are forgotten, oldest first, beyond 4,096 accounts", () => {
    const tools = { now: () => 0, random: () => 0.5 };
    const breaker = new Breaker(
      { ...LIMITS.breaker, maxFailures: 1, proofMs: Number.POSITIVE_INFINITY },
      tools,
    );
    const failFor = (accountId: string) => {
      // The young reply keeps the shared circuit closed.
      breaker.succeed(breaker.enter("acct_honest", false) as Pass);
      breaker.fail(breaker.enter(accountId, false) as Pass, new UpstreamFailure("failed", "500"));
    };
    for (let i = 0; i < 4_096; i++) failFor(`acct_${i}`);
    expect([breaker.openAccounts, breaker.enter("acct_0", false)]).toEqual([4_096, undefined]);
    failFor("acct_newest");
    expect(breaker.openAccounts).toBe(4_096);
    expect(breaker.enter("acct_0", false)).toMatchObject({ probe: "none" });
  });
});

describe("failures of several accounts in a row", () => {
  test("keep every account away", async () => {
    await breakIt();
    const { length } = fake.calls;
    expect((await run("acct_honest")).failure).toMatchObject({ reason: "upstream_error" });
    expect([fake.calls.length, runner.outcomes().at(-1)]).toEqual([length, "down"]);
  });

  test("send calls to the next upstream", async () => {
    await breakIt();
    const second = await FakeUpstream.start();
    model = modelOf(fake.settings(), second.settings());
    const { length } = fake.calls;
    expect((await run("acct_honest")).text).toBe(TEXT);
    expect([fake.calls.length, second.calls.length]).toEqual([length, 1]);
    await runner.use([]);
    await second.stop();
  });

  test("keep others away only as often as one of these accounts may fail in a row", async () => {
    const attack = async () => {
      for (let i = 0; i < FAILURES; i++) {
        fake.next(refuse(500), refuse(500), refuse(500));
        await run(`acct_attacker_${i}`);
        fake.forgetNext();
      }
    };
    for (let round = 0; round < FAILURES; round++) {
      await attack();
      expect(state()).toBe("open");
      runner.advance(2 * OPEN_MS);
      expect((await run("acct_honest")).text).toBe(TEXT);
      runner.advance(PROOF_MS);
    }
    for (let round = 0; round < FAILURES; round++) {
      await attack();
      expect((await run("acct_honest")).text).toBe(TEXT);
      runner.advance(PROOF_MS);
    }
    expect([state(), openAccounts()]).toEqual(["closed", FAILURES]);
  });

  test("do not count before a reply to any account", async () => {
    for (let i = 0; i < 3 * FAILURES; i++) {
      await fail(`acct_${i}`);
      expect((await run("acct_honest")).text).toBe(TEXT);
      runner.advance(PROOF_MS);
    }
    expect(state()).toBe("closed");
  });

  test("keep nobody away while the last whole reply is younger than proofMs", async () => {
    await run("acct_honest");
    for (let i = 0; i < 3 * FAILURES; i++) await fail(`acct_${i}`);
    expect((await run("acct_honest")).text).toBe(TEXT);
    for (let i = 0; i < 3 * FAILURES; i++) await fail(`acct_more_${i}`);
    expect(state()).toBe("closed");
    runner.advance(PROOF_MS);
    await fail("acct_last");
    expect(state()).toBe("open");
  });
});

describe("no connection", () => {
  test("keeps every account away after calls of one, which gets the probe too", async () => {
    const { port } = fake;
    await fake.stop();
    for (let i = 0; i < FAILURES; i++) await run();
    expect(state()).toBe("open");
    expect(new Set(runner.outcomes())).toEqual(new Set(["unreachable", "down"]));
    await run("acct_other");
    expect(runner.outcomes().at(-1)).toBe("down");
    fake = await FakeUpstream.start({ port });
    runner.advance(OPEN_MS);
    expect((await run()).text).toBe(TEXT);
    expect([state(), openAccounts()]).toEqual(["closed", 0]);
  });
});

describe("the probe", () => {
  test("is one call of an account whose last call did not fail; a reply lets all accounts pass", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    expect(state()).toBe("half_open");
    const gate = Promise.withResolvers<void>();
    const { length } = fake.calls;
    fake.next(async (turn) => {
      await gate.promise;
      await reply()(turn);
    });
    const probe = run("acct_honest");
    await fake.until(({ calls }) => calls.length === length + 1);
    await run("acct_other");
    expect(fake.calls.length).toBe(length + 1);
    gate.resolve();
    expect((await probe).text).toBe(TEXT);
    expect(state()).toBe("closed");
    for (let i = 0; i < FAILURES; i++) expect((await run(`acct_failing_${i}`)).text).toBe(TEXT);
  });

  test("of an account whose last call failed cannot prolong the wait of the others", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    for (let i = 0; i < FAILURES; i++) await fail(`acct_failing_${i}`);
    expect(state()).toBe("half_open");
    expect((await run("acct_honest")).text).toBe(TEXT);
    expect(state()).toBe("closed");
  });

  test("of an account whose last call failed does not take the place of another's", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    fake.next(silent);
    const leaving = new AbortController();
    const { length } = fake.calls;
    const attack = run("acct_failing_0", leaving.signal);
    await fake.until(({ calls }) => calls.length === length + 1);
    expect((await run("acct_honest")).text).toBe(TEXT);
    leaving.abort(new Error("gone"));
    await attack;
  });

  test("of an account whose last call failed lets all accounts pass when it is answered", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    expect((await run("acct_failing_0")).text).toBe(TEXT);
    expect([state(), openAccounts()]).toEqual(["closed", 0]);
  });

  test("that fails keeps all accounts away for twice as long", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    await fail("acct_honest");
    runner.advance(2 * OPEN_MS - 1);
    expect(state()).toBe("open");
    runner.advance(1);
    expect(state()).toBe("half_open");
  });

  test("that begins well and breaks off does so too", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    fake.next(hangUpAfter(1));
    expect((await run("acct_honest")).text).toBe("Hello");
    expect(state()).toBe("open");
  });

  test.each([
    ["without an answer", resetAtOnce],
    ["in the middle of its reply", hangUpAfter(1)],
  ])("that fails %s after a reply to another call keeps no account away", async (_, behaviour) => {
    await breakIt();
    runner.advance(OPEN_MS);
    const gate = Promise.withResolvers<void>();
    const { length } = fake.calls;
    fake.next(async (turn) => {
      await gate.promise;
      await behaviour(turn);
    });
    const slow = run("acct_slow");
    await fake.until(({ calls }) => calls.length === length + 1);
    await run("acct_honest");
    expect(fake.calls.length).toBe(length + 1);
    runner.advance(LIMITS.breaker.maxOpenMs);
    expect((await run("acct_honest")).text).toBe(TEXT);
    runner.advance(PROOF_MS);
    gate.resolve();
    await slow;
    expect(state()).toBe("closed");
    expect((await run("acct_honest")).text).toBe(TEXT);
  });

  test("whose caller leaves lets another call probe", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    const leaving = new AbortController();
    const { length } = fake.calls;
    fake.next(silent, reply());
    const probe = run("acct_honest", leaving.signal);
    await fake.until(({ calls }) => calls.length === length + 1);
    leaving.abort(new Error("gone"));
    await probe;
    expect((await run("acct_honest")).text).toBe(TEXT);
  });

  test("is not ended by a call from before, nor does that open the circuit again", async () => {
    const gate = Promise.withResolvers<void>();
    fake.next(async (turn) => {
      await gate.promise;
      await refuse(400)(turn);
    });
    const { length } = fake.calls;
    const before = run("acct_before");
    await fake.until(({ calls }) => calls.length === length + 1);
    await breakIt();
    runner.advance(OPEN_MS);
    gate.resolve();
    await before;
    // A refusal is an answer: the upstream works.
    expect(state()).toBe("closed");
  });
});
