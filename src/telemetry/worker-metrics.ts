import { AggregatorRegistry, type Registry } from "prom-client";

export type Snapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** What never goes back. A gauge of a process that is gone says nothing any more. */
const KEPT_TYPES: ReadonlySet<unknown> = new Set(["counter", "histogram", "summary"]);

/** The metrics of several processes as one. What a process was seen to count stays counted when it dies. */
export class WorkerMetrics {
  readonly #alive = new Map<number, Snapshot>();
  /** All that is gone, added up. */
  #gone: Snapshot = [];

  started(worker: number): void {
    this.#alive.set(worker, []);
  }

  /** What a worker tells; one that does not answer in time counts with what it told before. */
  told(worker: number, snapshot: Snapshot): void {
    if (this.#alive.has(worker)) this.#alive.set(worker, snapshot);
  }

  ended(worker: number): void {
    const last = this.#alive.get(worker) ?? [];
    this.#alive.delete(worker);
    const kept = last.filter(({ type }) => KEPT_TYPES.has(type));
    this.#gone = AggregatorRegistry.aggregate([this.#gone, kept]).getMetricsAsArray() as Snapshot;
  }

  /** As text, together with those of this process. */
  async read(own: Snapshot): Promise<string> {
    return await AggregatorRegistry.aggregate([...this.#alive.values(), this.#gone, own]).metrics();
  }
}
