import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Model } from "../../src/domain/model.ts";
import { Breaker, type Pass } from "../../src/upstreams/runner/breaker.ts";
import { UpstreamFailure } from "../../src/upstreams/upstream-failure.ts";
import { hangUpAfter, refuse, reply, replyWhen, resetAtOnce, silent } from "../support/fake-upstreams/behaviours.ts";
import { type Behaviour, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createTestRunner, modelOf, type TestRunner } from "./runner-support.ts";
import { callOf, NEVER, read } from "./support.ts";

const OPEN_MS = 10_000;
const HEALTHY_MS = 1_000;
const FAILURES = 3;
const LIMITS = { breaker: { maxFailures: FAILURES, healthyMs: HEALTHY_MS, openMs: OPEN_MS, maxOpenMs: 4 * OPEN_MS } };
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

const run = (accountId = "acct_1", signal = NEVER) => read(runner.streamEvents(callOf(model, { accountId, signal })));
const state = () => runner.status()[0]?.breaker;
const openAccounts = () => runner.status()[0]?.openAccounts;
const TEXT = "Hello, world.";

/** One call of which every attempt fails. */
async function fail(accountId = "acct_1", behaviour = refuse(500)) {
  fake.next(behaviour, behaviour, behaviour);
  expect((await run(accountId)).failure).toMatchObject({ reason: "upstream_error" });
  // A blocked account does not use all of them.
  fake.forgetNext();
}

/** A call that has reached the upstream, which behaves like this once the call is released. */
async function holdCall(accountId: string, behaviour: Behaviour, signal = NEVER) {
  const gate = Promise.withResolvers<void>();
  const { length } = fake.calls;
  fake.next(async (turn) => {
    await gate.promise;
    await behaviour(turn);
  });
  const outcome = run(accountId, signal);
  await fake.until(({ calls }) => calls.length === length + 1);
  return { outcome, release: gate.resolve };
}

/** Opens the shared circuit with failures of several accounts. */
async function breakIt() {
  for (let i = 0; i < FAILURES; i++) await fail(`acct_failing_${i}`);
  expect(state()).toBe("open");
}

describe("failed calls of one account", () => {
  test("do not block another account, however many there are", async () => {
    fake.always(refuse(500));
    for (let i = 0; i < 50; i++) await run("acct_attacker");
    fake.always(reply());
    expect((await run("acct_honest")).text).toBe(TEXT);
    expect([state(), openAccounts()]).toEqual(["closed", 1]);
  });

  test.each([
    ["500", refuse(500)],
    ["a reset", resetAtOnce],
    ["an interrupted reply", hangUpAfter(1)],
    ["no response", silent],
  ])("do not block other accounts while fewer accounts than the limit fail: %s", async (_, behaviour) => {
    // The reply at the end must arrive within this time too.
    model = modelOf(fake.settings({ timeoutMs: 1_000 }));
    await runner.use([model]);
    fake.always(behaviour);
    const attackers = Array.from({ length: 3 * FAILURES }, (_, i) => `acct_attacker_${i % (FAILURES - 1)}`);
    await Promise.all(attackers.map((accountId) => run(accountId)));
    fake.always(reply());
    expect((await run("acct_honest")).text).toBe(TEXT);
    expect(openAccounts()).toBe(FAILURES - 1);
  });

  test("block that account until its own probe gets a reply", async () => {
    for (let i = 0; i < FAILURES; i++) await fail();
    const { length } = fake.calls;
    expect((await run()).failure).toMatchObject({ reason: "upstream_error" });
    expect([fake.calls.length, runner.outcomes().at(-1)]).toEqual([length, "down"]);
    runner.advance(OPEN_MS);
    expect((await run()).text).toBe(TEXT);
    expect((await run()).text).toBe(TEXT);
    expect(openAccounts()).toBe(0);
  });

  test("block the account for twice as long after a failed probe", async () => {
    for (let i = 0; i < FAILURES; i++) await fail();
    runner.advance(OPEN_MS);
    await fail();
    runner.advance(2 * OPEN_MS - 1);
    expect((await run()).failure).toBeDefined();
    runner.advance(1);
    expect((await run()).text).toBe(TEXT);
  });

  test("count once per call, however many attempts it has", async () => {
    fake.always(refuse(500));
    for (let i = 1; i < FAILURES; i++) await run();
    expect([openAccounts(), fake.calls.length]).toEqual([0, (FAILURES - 1) * ATTEMPTS]);
  });

  test("count if the reply began and was interrupted", async () => {
    for (let i = 0; i < FAILURES; i++) await fail("acct_1", hangUpAfter(1));
    expect(openAccounts()).toBe(1);
  });

  test("count if a retry began a reply that was interrupted", async () => {
    for (let i = 0; i < FAILURES; i++) {
      fake.next(refuse(500), hangUpAfter(1));
      await run();
    }
    expect(openAccounts()).toBe(1);
  });

  test("are reset by a complete reply", async () => {
    for (let i = 0; i < 5; i++) {
      fake.next(refuse(500), refuse(500));
      expect((await run()).text).toBe(TEXT);
    }
    expect(openAccounts()).toBe(0);
  });

  test("are reset by a reply that has begun", async () => {
    const gate = Promise.withResolvers<void>();
    for (let i = 1; i < FAILURES; i++) await fail();
    fake.next(replyWhen(gate.promise));
    const events = runner.streamEvents(callOf(model));
    await events.next();
    await fail();
    expect(openAccounts()).toBe(0);
    gate.resolve();
    while (!(await events.next()).done);
  });

  test("do not include refusals: the upstream works", async () => {
    fake.always(refuse(429));
    for (let i = 0; i < FAILURES; i++) await run();
    fake.always(refuse(401));
    for (let i = 0; i < FAILURES; i++) await run();
    expect([state(), openAccounts()]).toEqual(["closed", 0]);
  });

  test("are kept for at most 4,096 accounts; the oldest is removed first", () => {
    const tools = { now: () => 0, random: () => 0.5 };
    const breaker = new Breaker({ ...LIMITS.breaker, maxFailures: 1, healthyMs: Number.POSITIVE_INFINITY }, tools);
    const failFor = (accountId: string) => {
      // A recent reply keeps the shared circuit closed.
      breaker.succeed(breaker.admit("acct_honest", false) as Pass);
      breaker.fail(breaker.admit(accountId, false) as Pass, new UpstreamFailure("failed", "500"));
    };
    for (let i = 0; i < 4_096; i++) failFor(`acct_${i}`);
    expect([breaker.openAccounts, breaker.admit("acct_0", false)]).toEqual([4_096, undefined]);
    failFor("acct_newest");
    expect(breaker.openAccounts).toBe(4_096);
    expect(breaker.admit("acct_0", false)).toMatchObject({ probe: "none" });
  });
});

describe("failed calls of several accounts in a row", () => {
  test("block every account", async () => {
    await breakIt();
    const { length } = fake.calls;
    expect((await run("acct_honest")).failure).toMatchObject({ reason: "upstream_error" });
    expect([fake.calls.length, runner.outcomes().at(-1)]).toEqual([length, "down"]);
  });

  test("move calls to the next upstream", async () => {
    await breakIt();
    const second = await FakeUpstream.start();
    model = modelOf(fake.settings(), second.settings());
    const { length } = fake.calls;
    expect((await run("acct_honest")).text).toBe(TEXT);
    expect([fake.calls.length, second.calls.length]).toEqual([length, 1]);
    await runner.use([]);
    await second.stop();
  });

  test("block other accounts only until each failing account has reached its own limit", async () => {
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
      runner.advance(HEALTHY_MS);
    }
    for (let round = 0; round < FAILURES; round++) {
      await attack();
      expect((await run("acct_honest")).text).toBe(TEXT);
      runner.advance(HEALTHY_MS);
    }
    expect([state(), openAccounts()]).toEqual(["closed", FAILURES]);
  });

  test("are reset by a reply to any account", async () => {
    for (let i = 0; i < 3 * FAILURES; i++) {
      await fail(`acct_${i}`);
      expect((await run("acct_honest")).text).toBe(TEXT);
      runner.advance(HEALTHY_MS);
    }
    expect(state()).toBe("closed");
  });

  test("block no other account within healthyMs of a complete reply", async () => {
    await run("acct_honest");
    for (let i = 0; i < 3 * FAILURES; i++) await fail(`acct_${i}`);
    expect((await run("acct_honest")).text).toBe(TEXT);
    for (let i = 0; i < 3 * FAILURES; i++) await fail(`acct_more_${i}`);
    expect(state()).toBe("closed");
    runner.advance(HEALTHY_MS);
    await fail("acct_last");
    expect(state()).toBe("open");
  });
});

describe("a failure to connect", () => {
  test("blocks every account after calls of one account, which can also probe", async () => {
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
  test("is one call of an account whose last call did not fail; its reply unblocks all accounts", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    expect(state()).toBe("half_open");
    const probe = await holdCall("acct_honest", reply());
    const { length } = fake.calls;
    await run("acct_other");
    expect(fake.calls.length).toBe(length);
    probe.release();
    expect((await probe.outcome).text).toBe(TEXT);
    expect(state()).toBe("closed");
    for (let i = 0; i < FAILURES; i++) expect((await run(`acct_failing_${i}`)).text).toBe(TEXT);
  });

  test("of an account whose last call failed does not extend the wait of other accounts", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    for (let i = 0; i < FAILURES; i++) await fail(`acct_failing_${i}`);
    expect(state()).toBe("half_open");
    expect((await run("acct_honest")).text).toBe(TEXT);
    expect(state()).toBe("closed");
  });

  test("of an account whose last call failed does not prevent the shared probe", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    const leaving = new AbortController();
    const attack = await holdCall("acct_failing_0", silent, leaving.signal);
    expect((await run("acct_honest")).text).toBe(TEXT);
    leaving.abort(new Error("gone"));
    await attack.outcome;
  });

  test("of an account whose last call failed unblocks all accounts when it gets a reply", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    expect((await run("acct_failing_0")).text).toBe(TEXT);
    expect([state(), openAccounts()]).toEqual(["closed", 0]);
  });

  test("doubles the wait of all accounts when it fails", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    await fail("acct_honest");
    runner.advance(2 * OPEN_MS - 1);
    expect(state()).toBe("open");
    runner.advance(1);
    expect(state()).toBe("half_open");
  });

  test("opens the circuit again when its reply is interrupted", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    fake.next(hangUpAfter(1));
    expect((await run("acct_honest")).text).toBe("Hello");
    expect(state()).toBe("open");
  });

  test.each([
    ["without a response", resetAtOnce],
    ["during its reply", hangUpAfter(1)],
  ])("blocks no account if it fails %s after a reply to another call", async (_, behaviour) => {
    await breakIt();
    runner.advance(OPEN_MS);
    const slow = await holdCall("acct_slow", behaviour);
    const { length } = fake.calls;
    await run("acct_honest");
    expect(fake.calls.length).toBe(length);
    runner.advance(LIMITS.breaker.maxOpenMs);
    expect((await run("acct_honest")).text).toBe(TEXT);
    runner.advance(HEALTHY_MS);
    slow.release();
    await slow.outcome;
    expect(state()).toBe("closed");
    expect((await run("acct_honest")).text).toBe(TEXT);
  });

  test("can be taken by another call when its caller disconnects", async () => {
    await breakIt();
    runner.advance(OPEN_MS);
    const leaving = new AbortController();
    const probe = await holdCall("acct_honest", silent, leaving.signal);
    leaving.abort(new Error("gone"));
    await probe.outcome;
    expect((await run("acct_honest")).text).toBe(TEXT);
  });

  test("is not needed when an earlier call is refused: the circuit closes", async () => {
    const before = await holdCall("acct_before", refuse(400));
    await breakIt();
    runner.advance(OPEN_MS);
    before.release();
    await before.outcome;
    // A refusal shows that the upstream works.
    expect(state()).toBe("closed");
  });
});

test("calls that an open breaker refuses take no slots", async () => {
  await runner.close();
  // One account gets one of two slots.
  runner = createTestRunner({ ...LIMITS, slots: { maxRunning: 2, maxWaiting: 0, maxWaitMs: 1 } });
  await runner.use([model]);
  await breakIt();
  for (let i = 0; i < 4; i++) expect((await run()).failure).toMatchObject({ reason: "upstream_error" });
  expect(runner.status()[0]).toMatchObject({ running: 0, waiting: 0 });
  runner.advance(2 * OPEN_MS);
  expect(await run()).toMatchObject({ text: TEXT });
  expect(await run()).toMatchObject({ text: TEXT });
});
