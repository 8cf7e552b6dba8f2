import { setTimeout } from "node:timers/promises";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { Connections } from "./upstreams/connections.ts";
import { type OpenOptions, openUpstream } from "./upstreams/open-upstream.ts";
import { RUNNER_LIMITS, Runner } from "./upstreams/runner.ts";

export type CreateRunnerOptions = {
  readonly env: OpenOptions["env"];
  readonly openSandbox: OpenOptions["openSandbox"];
  readonly log: Log;
  readonly metrics: Metrics;
};

/** The runner of a server, with its clock, its log and its metrics. */
export function createRunner({ env, openSandbox, log, metrics }: CreateRunnerOptions): Runner {
  const connections = new Connections();
  const runner = new Runner({
    limits: RUNNER_LIMITS,
    open: (settings) => openUpstream(settings, { connections, env, openSandbox }),
    now: () => performance.now(),
    random: Math.random,
    sleep: (ms, signal) => setTimeout(ms, undefined, { signal }),
    onTry: (upstream, outcome, failure) => {
      metrics.upstreamTries.inc({ upstream, outcome });
      if (failure) log.warn({ upstream, outcome, why: failure.message }, "an upstream failed");
    },
  });
  metrics.upstreams(() => runner.status());
  return runner;
}
