import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  AuditFiguresSchema,
  FailureCountSchema,
  HourFiguresSchema,
  ServerFiguresSchema,
  WatchOverviewResponseSchema,
} from "../../gen/vx/admin/v1/console_pb.js";
import { type LastAudit, lastAudit } from "../audit/store.ts";
import type { Cells } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import { type Counts, readCounts } from "../telemetry/counts.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { readServiceFigures } from "./service-figures.ts";

/** Figures of the running service, for the console. */
type Overview = MessageInitShape<typeof WatchOverviewResponseSchema>;

/** Sends the current figures at once and then at regular times, until the signal is aborted or the server stops. */
export type WatchOverview = (operatorId: string, signal: AbortSignal) => AsyncIterable<Overview>;

const PAUSE_MS = 2_000;
const WINDOW_MS = 60_000;
const MINUTES = 60;
const HOUR_MS = 3_600_000;
const MAX_WATCHERS = 100;
const MAX_WATCHERS_PER_OPERATOR = 10;

type FeedOptions = {
  readonly database: Cells;
  readonly isReachable: () => boolean;
  readonly readMetrics: () => Promise<Metrics["registry"]>;
  readonly onFailure: (error: unknown) => void;
  /** Starts the regular work of a minute, and returns what ends it. */
  readonly everyMinute: (work: () => void) => () => void;
  /** Between the starts of two scheduled audits; 0 for none. */
  readonly auditHours: number;
  /** Ends all streams when a drain begins, which they would delay. */
  readonly drainSignal: AbortSignal;
};

type Sample = { readonly atMs: number; readonly counts: Counts };

/**
 * Measures the running service while there are watchers, which share the measurements. It also keeps the counts of each of the
 * last 60 minutes, so that a watcher sees the last hour at once.
 */
export class OverviewFeed {
  readonly #options: FeedOptions;
  readonly #watchers = new Map<string, number>();
  readonly #waiting = new Set<(overview: Overview | undefined) => void>();
  /** The last minute, oldest first. */
  #samples: Sample[] = [];
  /** One per full minute of the last hour, oldest first, after one from the start of the server. */
  #minutes: Sample[] = [];
  #latest: Overview | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
    const record = () => void this.#recordMinute().catch(options.onFailure);
    record();
    const endMinutes = options.everyMinute(record);
    options.drainSignal.addEventListener(
      "abort",
      () => {
        endMinutes();
        this.#stop();
      },
      { once: true },
    );
  }

  readonly watch: WatchOverview = (operatorId, signal) => this.#watch(operatorId, signal);

  async *#watch(operatorId: string, signal: AbortSignal): AsyncGenerator<Overview, void> {
    this.#insert(operatorId);
    try {
      let overview = this.#latest ?? (await this.#next(signal));
      while (overview) {
        yield overview;
        overview = await this.#next(signal);
      }
    } finally {
      this.#remove(operatorId);
    }
  }

  /** The first watcher starts the measurements, and the last one ends them. */
  #insert(operatorId: string): void {
    const own = this.#watchers.get(operatorId) ?? 0;
    const all = [...this.#watchers.values()].reduce((sum, count) => sum + count, 0);
    if (own >= MAX_WATCHERS_PER_OPERATOR || all >= MAX_WATCHERS) throw new DomainError("overloaded");
    this.#watchers.set(operatorId, own + 1);
    if (all === 0) this.#schedule(0);
  }

  #remove(operatorId: string): void {
    const own = this.#watchers.get(operatorId) ?? 0;
    if (own > 1) this.#watchers.set(operatorId, own - 1);
    else this.#watchers.delete(operatorId);
    if (this.#watchers.size === 0) this.#stop();
  }

  /** Undefined when the stream ends. */
  #next(signal: AbortSignal): Promise<Overview | undefined> {
    return new Promise((resolve) => {
      const finish = (overview: Overview | undefined) => {
        this.#waiting.delete(finish);
        signal.removeEventListener("abort", end);
        resolve(overview);
      };
      const end = () => finish(undefined);
      if (signal.aborted || this.#options.drainSignal.aborted) return end();
      signal.addEventListener("abort", end, { once: true });
      this.#waiting.add(finish);
    });
  }

  #announce(overview: Overview | undefined): void {
    for (const finish of [...this.#waiting]) finish(overview);
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#measure().catch((error: unknown) => {
        this.#options.onFailure(error);
        if (this.#watchers.size > 0) this.#schedule(PAUSE_MS);
      });
    }, delayMs);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#samples = [];
    this.#latest = undefined;
    this.#announce(undefined);
  }

  async #recordMinute(): Promise<void> {
    this.#minutes = [...this.#minutes, await this.#sample()].slice(-MINUTES - 1);
  }

  async #sample(): Promise<Sample> {
    const counts = await readCounts(await this.#options.readMetrics());
    return { atMs: performance.now(), counts };
  }

  async #measure(): Promise<void> {
    const sample = await this.#sample();
    const overview = {
      time: timestampFromDate(new Date()),
      server: this.#serverFigures(sample),
      lastHour: this.#lastHour(sample),
      ...(await this.#readDatabase()),
    };
    if (this.#watchers.size === 0 || this.#options.drainSignal.aborted) return;
    this.#samples = [...this.#samples.filter(({ atMs }) => atMs > sample.atMs - WINDOW_MS), sample];
    this.#latest = overview;
    this.#announce(overview);
    this.#schedule(PAUSE_MS);
  }

  #serverFigures({ atMs, counts }: Sample): MessageInitShape<typeof ServerFiguresSchema> {
    const first = this.#samples[0] ?? { atMs, counts };
    const last = this.#samples.at(-1) ?? first;
    const seconds = (atMs - last.atMs) / 1_000;
    return {
      windowSeconds: (atMs - first.atMs) / 1_000,
      callsPerSecond: seconds === 0 ? 0 : Number(counts.calls - last.counts.calls) / seconds,
      calls: counts.calls - first.counts.calls,
      failures: failuresBetween(first.counts, counts),
      chargedMicros: counts.chargedMicros - first.counts.chargedMicros,
      runningGenerations: counts.runningGenerations,
      upstreams: [...counts.upstreams].map(([name, upstream]) => {
        const before = first.counts.upstreams.get(name);
        return {
          ...upstream,
          name,
          running: BigInt(upstream.running),
          waiting: BigInt(upstream.waiting),
          succeeded: BigInt(upstream.succeeded - (before?.succeeded ?? 0)),
          failed: BigInt(upstream.failed - (before?.failed ?? 0)),
        };
      }),
    };
  }

  #lastHour(sample: Sample): MessageInitShape<typeof HourFiguresSchema> {
    const first = this.#minutes[0] ?? sample;
    return {
      seconds: (sample.atMs - first.atMs) / 1_000,
      calls: sample.counts.calls - first.counts.calls,
      failures: failuresBetween(first.counts, sample.counts),
      chargedMicros: sample.counts.chargedMicros - first.counts.chargedMicros,
      minutes: this.#minutes.slice(1).map(({ counts }, index) => {
        const before = this.#minutes[index]?.counts ?? counts;
        return {
          calls: counts.calls - before.calls,
          failedCalls: failuresBetween(before, counts).reduce((sum, { calls }) => sum + calls, 0n),
          chargedMicros: counts.chargedMicros - before.chargedMicros,
        };
      }),
    };
  }

  /** Without the figures of the database if it does not respond. */
  async #readDatabase(): Promise<Pick<Overview, "service" | "database" | "audit">> {
    const { database, isReachable, auditHours } = this.#options;
    const startedAt = performance.now();
    const service = await readServiceFigures(database).catch(() => undefined);
    const last = await lastAudit(database).catch(() => undefined);
    return {
      ...(last && { audit: auditOf(last, auditHours) }),
      ...(service && { service }),
      database: {
        reachable: isReachable() && service !== undefined,
        latencyMs: performance.now() - startedAt,
        connections: database.connections,
        statements: database.running,
      },
    };
  }
}

function auditOf(last: LastAudit, everyHours: number): MessageInitShape<typeof AuditFiguresSchema> {
  const { started_at: startedAt, claimed_at: claimedAt, seconds, entries: lastEntries, findings: lastFindings } = last;
  const isNextKnown = everyHours !== 0 && claimedAt !== null;
  return {
    ...(startedAt && { lastStartedAt: timestampFromDate(startedAt), lastSeconds: seconds ?? 0, lastEntries, lastFindings }),
    everyHours,
    ...(isNextKnown && { nextAt: timestampFromDate(new Date(claimedAt.getTime() + everyHours * HOUR_MS)) }),
  };
}

type FailedCalls = MessageInitShape<typeof FailureCountSchema> & { readonly calls: bigint };

/** The failed calls by reason, the most frequent first. */
function failuresBetween(before: Counts, after: Counts): FailedCalls[] {
  return [...after.failures]
    .map(([reason, calls]) => ({ reason, calls: calls - (before.failures.get(reason) ?? 0n) }))
    .filter(({ calls }) => calls > 0n)
    .sort((a, b) => Number(b.calls - a.calls));
}
