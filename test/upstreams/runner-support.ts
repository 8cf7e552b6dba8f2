import type { Model } from "../../src/domain/model.ts";
import { Connections } from "../../src/upstreams/http/connection-pool.ts";
import { openUpstream } from "../../src/upstreams/open-upstream.ts";
import type { Outcome } from "../../src/upstreams/runner/attempt.ts";
import { RUNNER_LIMITS, Runner, type RunnerLimits } from "../../src/upstreams/runner/runner.ts";

/** A runner whose clock and random numbers the test controls. */
export class TestRunner extends Runner {
  readonly connections: Connections;
  readonly #hands: Hands;

  constructor(limits: Partial<RunnerLimits>, hands: Hands) {
    const connections = new Connections();
    super({
      limits: { ...RUNNER_LIMITS, ...limits },
      open: (settings) =>
        openUpstream(settings, {
          connections,
          env: {},
          openSandbox: () => {
            throw new Error("no sandbox here");
          },
        }),
      now: () => hands.nowMs,
      random: () => 0.5,
      sleep: (ms, signal) => hands.sleep(ms, signal),
      onReport: ({ outcome }) => hands.outcomes.push(outcome),
    });
    this.connections = connections;
    this.#hands = hands;
  }

  /** How the attempts ended so far. */
  outcomes(): readonly Outcome[] {
    return this.#hands.outcomes;
  }

  /** The waits between attempts, none of which took any time. */
  get sleeps(): readonly number[] {
    return this.#hands.sleeps;
  }

  set sleep(sleep: Hands["sleep"]) {
    this.#hands.sleep = sleep;
  }

  advance(ms: number): void {
    this.#hands.nowMs += ms;
  }
}

type Hands = {
  nowMs: number;
  readonly sleeps: number[];
  readonly outcomes: Outcome[];
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
};

/** Its breaker never opens unless the test wants that. */
export function createTestRunner(limits: Partial<RunnerLimits> = {}): TestRunner {
  const hands: Hands = {
    nowMs: 1_000,
    sleeps: [],
    outcomes: [],
    sleep: (ms) => {
      hands.sleeps.push(ms);
      return Promise.resolve();
    },
  };
  return new TestRunner(
    { breaker: { maxFailures: 1_000, proofMs: 0, openMs: 1, maxOpenMs: 1 }, ...limits },
    hands,
  );
}

export function modelOf(...upstreams: Model["upstreams"]): Model {
  return {
    id: "test-model",
    ownedBy: "tests",
    createdSeconds: 0,
    contextWindow: 1_000,
    maxOutputTokens: 1_000,
    defaultOutputTokens: 1_000,
    promptOverheadTokens: { base: 0, perMessage: 0 },
    inputMicrosPerMillionTokens: 1n,
    outputMicrosPerMillionTokens: 1n,
    upstreams,
  };
}
