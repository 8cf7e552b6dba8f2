import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import type { TokenCounter } from "./tokens/token-counter.ts";
import { Connections } from "./upstreams/connections.ts";
import { openUpstream } from "./upstreams/open-upstream.ts";
import { RUNNER_LIMITS, Runner } from "./upstreams/runner.ts";
import { SandboxUpstream } from "./upstreams/sandbox.ts";

type UpstreamsOptions = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly tokens: TokenCounter;
  readonly log: Log;
  readonly metrics: Metrics;
};

/** What asks the upstreams of models; with none yet. */
export function createUpstreams({ env, tokens, log, metrics }: UpstreamsOptions): Runner {
  const connections = new Connections();
  const runner = new Runner({
    limits: RUNNER_LIMITS,
    open: (settings) =>
      openUpstream(settings, {
        connections,
        env,
        openSandbox: (sandbox) =>
          new SandboxUpstream({
            settings: sandbox,
            countPrompt: (messages, signal) => tokens.countPrompt(messages, { signal }),
          }),
      }),
    now: () => performance.now(),
    random: Math.random,
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
    onTry: (upstream, outcome, failure) => {
      metrics.upstreamTries.inc({ upstream, outcome });
      if (failure) log.warn({ upstream, outcome, err: failure }, "an upstream failed");
    },
  });
  metrics.gaugesOf("vx_upstream_running", "Calls that an upstream is working on.", "upstream", () =>
    runner.status().map(({ name, running }) => [name, running]),
  );
  metrics.gaugesOf("vx_upstream_waiting", "Calls that wait for an upstream.", "upstream", () =>
    runner.status().map(({ name, waiting }) => [name, waiting]),
  );
  metrics.gaugesOf("vx_upstream_open", "1 while a breaker keeps calls from an upstream.", "upstream", () =>
    runner.status().map(({ name, breaker }) => [name, breaker === "closed" ? 0 : 1]),
  );
  return runner;
}
