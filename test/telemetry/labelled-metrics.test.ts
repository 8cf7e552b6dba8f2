import { Counter, Histogram, Registry } from "prom-client";
import { expect, test } from "vitest";
import { labelledMetrics } from "../../src/telemetry/metrics.ts";
import { WorkerMetrics } from "../../src/telemetry/worker-metrics.ts";

const BUCKETS = [0.01, 0.5, 10];
const RPCS = ["A/One", "A/Two", 'B/"\\\n'];

type Counted = {
  readonly calls: { inc(values: readonly [rpc: string, code: string], value?: number): void };
  readonly latency: { observe(values: readonly [rpc: string], value: number): void };
};

function ours(registry: Registry): Counted {
  const { counter, histogram } = labelledMetrics(registry);
  return {
    calls: counter("calls_total", "Calls.", "rpc", "code"),
    latency: histogram("call_seconds", "Durations.", BUCKETS, "rpc"),
  };
}

function ofPromClient(registry: Registry): Counted {
  const registers = [registry];
  const [calls, latency] = [
    { name: "calls_total", help: "Calls.", labelNames: ["rpc", "code"], registers },
    { name: "call_seconds", help: "Durations.", labelNames: ["rpc"], buckets: BUCKETS, registers },
  ];
  const [counter, histogram] = [new Counter(calls), new Histogram(latency)];
  return {
    calls: { inc: ([rpc, code], value) => counter.inc({ rpc, code }, value) },
    latency: { observe: ([rpc], value) => histogram.observe({ rpc }, value) },
  };
}

function count({ calls, latency }: Counted, events: number): void {
  for (let i = 0; i < events; i++) {
    const rpc = RPCS[i % 3] ?? "";
    calls.inc([rpc, i % 2 === 0 ? "ok" : "internal"]);
    calls.inc([rpc, "ok"], i * 1_000);
    latency.observe([rpc], [0, 0.01, 0.02, 9.5, 10.5, 1_000][i % 6] ?? 0);
  }
}

/** Both registries, after the same events. */
function registries(events: number): Registry[] {
  return [ours, ofPromClient].map((create) => {
    const registry = new Registry();
    count(create(registry), events);
    return registry;
  });
}

test("labelled metrics are rendered like those of prom-client", async () => {
  for (const events of [0, 1, 40]) {
    const [own, theirs] = await Promise.all(registries(events).map((registry) => registry.metrics()));
    expect(own).toBe(theirs);
  }
});

test("labelled metrics of several processes are added like those of prom-client", async () => {
  const [first, second, third] = await Promise.all(
    [7, 40, 100].map(async (events) =>
      // As the processes send them to each other.
      Promise.all(registries(events).map(async (one) => JSON.parse(JSON.stringify(await one.getMetricsAsJSON())))),
    ),
  );
  const added = [0, 1].map((of) => {
    const workers = new WorkerMetrics();
    workers.started(1);
    workers.record(1, first?.[of]);
    workers.started(2);
    workers.record(2, second?.[of]);
    workers.ended(2);
    return workers.aggregate(third?.[of]).metrics();
  });
  const [own, theirs] = await Promise.all(added);
  expect(own).toContain('call_seconds_count{rpc="A/One"} 51');
  expect(own).toBe(theirs);
});
