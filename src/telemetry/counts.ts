import type { Metrics } from "./metrics.ts";

/** The counts of an upstream: the first four are current values; `succeeded` and `failed` count from the start. */
type UpstreamCounts = {
  openBreakers: number;
  openAccounts: number;
  running: number;
  waiting: number;
  succeeded: number;
  failed: number;
};

/** The metrics that the overview shows. Counts are since the start of the server. */
export type Counts = {
  readonly calls: bigint;
  readonly failures: ReadonlyMap<string, bigint>;
  readonly chargedMicros: bigint;
  readonly runningGenerations: bigint;
  readonly upstreams: ReadonlyMap<string, UpstreamCounts>;
};

type Sample = { readonly value: number; readonly labels: Readonly<Record<string, string>> };

/** Outcomes that the upstream did not cause: the caller disconnected, or no request was sent. */
const NEUTRAL_OUTCOMES: ReadonlySet<string | undefined> = new Set(["cancelled", "busy", "down"]);

export async function readCounts(registry: Metrics["registry"]): Promise<Counts> {
  const read = async (name: string) => ((await registry.getSingleMetric(name)?.get())?.values ?? []) as Sample[];
  const calls = (await read("vx_calls_total")).filter(({ labels }) => !labels.rpc?.startsWith("vx.admin."));
  const failures = await read("vx_failed_calls_total");
  return {
    calls: sum(calls),
    failures: new Map(failures.map(({ labels, value }) => [labels.reason ?? "", BigInt(value)])),
    chargedMicros: sum(await read("vx_charged_micros_total")),
    runningGenerations: sum(await read("vx_running_generations")),
    upstreams: await readUpstreams(read),
  };
}

async function readUpstreams(read: (name: string) => Promise<Sample[]>): Promise<Map<string, UpstreamCounts>> {
  const upstreams = new Map<string, UpstreamCounts>();
  const gauges = {
    running: "vx_upstream_running",
    waiting: "vx_upstream_waiting",
    openBreakers: "vx_upstream_open",
    openAccounts: "vx_upstream_open_accounts",
  } as const;
  for (const [field, metric] of Object.entries(gauges) as [keyof typeof gauges, string][]) {
    for (const { labels, value } of await read(metric)) countsOf(upstreams, labels.upstream)[field] = value;
  }
  for (const { labels, value } of await read("vx_upstream_attempts_total")) {
    const counts = upstreams.get(labels.upstream ?? "");
    // An upstream that was removed from the models keeps its attempts.
    if (!counts || NEUTRAL_OUTCOMES.has(labels.outcome)) continue;
    counts[labels.outcome === "ok" ? "succeeded" : "failed"] += value;
  }
  return upstreams;
}

function countsOf(upstreams: Map<string, UpstreamCounts>, name = ""): UpstreamCounts {
  const known = upstreams.get(name);
  if (known) return known;
  const counts = { openBreakers: 0, openAccounts: 0, running: 0, waiting: 0, succeeded: 0, failed: 0 };
  upstreams.set(name, counts);
  return counts;
}

function sum(samples: readonly Sample[]): bigint {
  return BigInt(samples.reduce((total, { value }) => total + value, 0));
}
