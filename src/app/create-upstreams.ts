import { setTimeout as sleep } from "node:timers/promises";
import { outputTokensOf } from "../domain/usage.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { RecordAttempt } from "../telemetry/telemetry.ts";
import type { TokenCounter } from "../tokens/token-counter.ts";
import { Connections } from "../upstreams/http/connection-pool.ts";
import { openUpstream } from "../upstreams/open-upstream.ts";
import type { AttemptReport } from "../upstreams/runner/attempt.ts";
import { Runner } from "../upstreams/runner/runner.ts";
import { RUNNER_LIMITS } from "../upstreams/runner/runner-limits.ts";
import { SandboxUpstream } from "../upstreams/sandbox/sandbox.ts";
import type { UpstreamFailure } from "../upstreams/upstream-failure.ts";

type UpstreamsOptions = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly tokens: TokenCounter;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined if no metrics are exported. */
  readonly recordAttempt: RecordAttempt | undefined;
};

/** Creates a runner that has no models yet. */
export function createUpstreams(options: UpstreamsOptions): Runner {
  const { env, tokens, log, metrics, recordAttempt } = options;
  const connections = new Connections();
  const runner = new Runner({
    limits: RUNNER_LIMITS,
    open: (settings) =>
      openUpstream(settings, {
        connections,
        env,
        loadFirstTokens: () => tokens.loadFirstTokens(),
        openSandbox: (sandbox) =>
          new SandboxUpstream({
            settings: sandbox,
            countPrompt: (prompt, signal) => tokens.countPrompt(prompt, { signal }),
          }),
      }),
    now: () => performance.now(),
    random: Math.random,
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
    onReport: (report) => {
      const { call, upstream, settings, outcome, failure, result } = report;
      metrics.upstreamAttempts.inc([upstream, outcome]);
      measureAttempt(metrics, report);
      if (result) recordAttempt?.({ model: call.model, settings, prompt: call.prompt }, result);
      if (failure) log.warn(fieldsOf(report, failure), "upstream attempt failed");
    },
  });
  metrics.gaugesOf("vx_upstream_running", "Calls that run at an upstream.", "upstream", () =>
    runner.status().map(({ name, running }) => [name, running]),
  );
  metrics.gaugesOf("vx_upstream_waiting", "Calls that wait for an upstream.", "upstream", () =>
    runner.status().map(({ name, waiting }) => [name, waiting]),
  );
  metrics.gaugesOf(
    "vx_upstream_open",
    "1 while the breaker of an upstream is open for all accounts.",
    "upstream",
    () => runner.status().map(({ name, breaker }) => [name, breaker === "closed" ? 0 : 1]),
  );
  metrics.gaugesOf(
    "vx_upstream_open_accounts",
    "Accounts for which the breaker of an upstream is open.",
    "upstream",
    () => runner.status().map(({ name, openAccounts }) => [name, openAccounts]),
  );
  return runner;
}

/** Does not measure attempts without a request. */
function measureAttempt(metrics: Metrics, { call, upstream, result }: AttemptReport): void {
  if (!result) return;
  const { startedAtMs, firstPieceAtMs, endedAtMs, usage } = result;
  const model = call.model.id;
  metrics.attemptDuration.observe([upstream], (endedAtMs - startedAtMs) / 1_000);
  if (firstPieceAtMs === undefined) return;
  metrics.firstToken.observe([model], (firstPieceAtMs - startedAtMs) / 1_000);
  const tokens = usage ? outputTokensOf(usage) : 0;
  if (tokens > 0 && endedAtMs > firstPieceAtMs)
    metrics.tokenRate.observe([model], tokens / ((endedAtMs - firstPieceAtMs) / 1_000));
}

/** Omits the stack: a failed upstream is not a bug of the server. */
function fieldsOf({ call, upstream, number }: AttemptReport, failure: UpstreamFailure) {
  return {
    request_id: call.requestId,
    trace_id: call.trace?.traceId,
    account_id: call.accountId,
    model: call.model.id,
    upstream,
    attempt: number,
    reason: failure.kind,
    detail: failure.message,
  };
}
