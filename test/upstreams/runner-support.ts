import type { Model } from "../../src/domain/model.ts";
import { firstTokens } from "../../src/tokens/count-tokens.ts";
import { Connections } from "../../src/upstreams/http/connection-pool.ts";
import { openUpstream } from "../../src/upstreams/open-upstream.ts";
import type { Outcome } from "../../src/upstreams/runner/guarded-upstream.ts";
import { RUNNER_LIMITS, Runner, type RunnerLimits } from "../../src/upstreams/runner/runner.ts";
import { modelOf as sampleModel } from "../support/samples.ts";

/** A runner whose clock and random numbers the test controls. */
export class TestRunner extends Runner {
  readonly connections: Connections;
  readonly #state: State;

  constructor(limits: Partial<RunnerLimits>, state: State) {
    const connections = new Connections();
    super({
      limits: { ...RUNNER_LIMITS, ...limits },
      open: (settings) =>
        openUpstream(settings, {
          connections,
          env: {},
          loadFirstTokens: async () => firstTokens,
          openSandbox: () => {
            throw new Error("no sandbox here");
          },
        }),
      now: () => state.nowMs,
      random: () => 0.5,
      sleep: (ms, signal) => state.sleep(ms, signal),
      onReport: ({ outcome }) => state.outcomes.push(outcome),
    });
    this.connections = connections;
    this.#state = state;
  }

  /** Outcomes of the attempts so far. */
  outcomes(): readonly Outcome[] {
    return this.#state.outcomes;
  }

  /** The requested waits between attempts. None takes any time. */
  get sleeps(): readonly number[] {
    return this.#state.sleeps;
  }

  set sleep(sleep: State["sleep"]) {
    this.#state.sleep = sleep;
  }

  advance(ms: number): void {
    this.#state.nowMs += ms;
  }
}

type State = {
  nowMs: number;
  readonly sleeps: number[];
  readonly outcomes: Outcome[];
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
};

/** The breaker does not open unless the limits say otherwise. */
export function createTestRunner(limits: Partial<RunnerLimits> = {}): TestRunner {
  const state: State = {
    nowMs: 1_000,
    sleeps: [],
    outcomes: [],
    sleep: (ms) => {
      state.sleeps.push(ms);
      return Promise.resolve();
    },
  };
  return new TestRunner({ breaker: { maxFailures: 1_000, healthyMs: 0, openMs: 1, maxOpenMs: 1 }, ...limits }, state);
}

export function modelOf(...upstreams: Model["upstreams"]): Model {
  return sampleModel({ id: "test-model", upstreams });
}
