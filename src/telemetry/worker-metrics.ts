import { AggregatorRegistry, type Registry } from "prom-client";

export type Snapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** Types that only increase. A gauge of a process that has exited is meaningless. */
const KEPT_TYPES: ReadonlySet<unknown> = new Set(["counter", "histogram", "summary"]);

/** Aggregates the metrics of several processes. The last counts of a worker are kept after it exits. */
export class WorkerMetrics {
  readonly #alive = new Map<number, Snapshot>();
  /** The sum over all workers that have exited. */
  #exited: Snapshot = [];

  started(worker: number): void {
    this.#alive.set(worker, []);
  }

  /** Stores a worker's snapshot. A worker that does not reply in time keeps its previous one. */
  record(worker: number, snapshot: Snapshot): void {
    if (this.#alive.has(worker)) this.#alive.set(worker, snapshot);
  }

  ended(worker: number): void {
    const last = this.#alive.get(worker) ?? [];
    this.#alive.delete(worker);
    const kept = last.filter(({ type }) => KEPT_TYPES.has(type));
    this.#exited = AggregatorRegistry.aggregate([this.#exited, kept]).getMetricsAsArray() as Snapshot;
  }

  /** The metrics of all processes, including those of this process. */
  aggregate(own: Snapshot): Registry {
    return AggregatorRegistry.aggregate([...this.#alive.values(), this.#exited, own]);
  }
}
