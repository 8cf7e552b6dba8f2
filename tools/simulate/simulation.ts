import { LANE_COUNT } from "../../src/domain/lane.ts";
import { EventQueue } from "./event-queue.ts";

/** Measured with `npm run bench -- replicas`; times in microseconds of CPU time, except the last two. */
export type Costs = {
  readonly serverPerCall: number;
  readonly serverPerStatement: number;
  readonly postgresPerCall: number;
  readonly postgresPerStatement: number;
  /** From the server to PostgreSQL and back. */
  readonly roundTripMs: number;
  /** A commit waits until the disk, or a synchronous standby, has it. */
  readonly commitMs: number;
};

export type Scenario = {
  readonly servers: number;
  readonly cells: number;
  readonly postgresCores: number;
  readonly callsPerSecond: number;
  readonly seconds: number;
  readonly costs: Costs;
  /** From 0 to 1. */
  readonly random: () => number;
};

export type Outcome = {
  readonly completedPerSecond: number;
  readonly admissionBatch: number;
  readonly billingBatch: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Shares of the time in which the cores work. */
  readonly serverUse: number;
  readonly postgresUse: number;
};

type Kind = "admission" | "billing";
type Item = { readonly lane: number; readonly done: () => void };
type Batcher = { readonly kind: Kind; readonly waiting: Item[]; isBusy: boolean };
type Server = { freeAt: number; busyMs: number; readonly batchers: readonly Record<Kind, Batcher>[] };
type Statement = { readonly items: readonly Item[]; readonly then: () => void };
type Cell = {
  /** When each core is free. */
  readonly cores: number[];
  busyMs: number;
  readonly locked: Set<number>;
  /** Billing statements that wait for a lane. */
  readonly waiting: Statement[];
};

const MAX_BATCH: Record<Kind, number> = { admission: 1_024, billing: 512 };
/** A call is admitted, held and settled. */
const STATEMENTS_OF_CALL = 3;
/** Server work before the admission, and after each result. */
const STEPS = STATEMENTS_OF_CALL + 1;

/**
 * Calls of random accounts arrive at random times at random servers. A server has one core, and one batcher of each kind for
 * each cell: while a batch runs, further items wait. PostgreSQL executes a statement on one of its cores. A billing batch locks
 * its lanes until it is committed. The upstream takes no time.
 */
export function simulate(scenario: Scenario): Outcome {
  return new Simulation(scenario).run();
}

class Simulation {
  readonly #scenario: Scenario;
  readonly #events = new EventQueue();
  readonly #cells: readonly Cell[];
  readonly #servers: readonly Server[];
  readonly #sizes: Record<Kind, { items: number; batches: number }> = {
    admission: { items: 0, batches: 0 },
    billing: { items: 0, batches: 0 },
  };
  readonly #latencies: number[] = [];

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#cells = Array.from({ length: scenario.cells }, () => ({
      cores: new Array<number>(scenario.postgresCores).fill(0),
      busyMs: 0,
      locked: new Set<number>(),
      waiting: [],
    }));
    this.#servers = Array.from({ length: scenario.servers }, () => ({
      freeAt: 0,
      busyMs: 0,
      batchers: this.#cells.map(() => ({
        admission: createBatcher("admission"),
        billing: createBatcher("billing"),
      })),
    }));
  }

  run(): Outcome {
    const { seconds, postgresCores } = this.#scenario;
    this.#events.at(0, () => this.#call());
    this.#events.runUntil(seconds * 1_000);
    const latencies = this.#latencies.sort((a, b) => a - b);
    const mean = ({ items, batches }: { items: number; batches: number }) => items / Math.max(batches, 1);
    const use = (parts: readonly { busyMs: number }[], cores: number) =>
      parts.reduce((sum, { busyMs }) => sum + busyMs, 0) / (parts.length * cores * seconds * 1_000);
    return {
      completedPerSecond: latencies.length / seconds,
      admissionBatch: mean(this.#sizes.admission),
      billingBatch: mean(this.#sizes.billing),
      p50Ms: latencies[Math.floor(latencies.length * 0.5)] ?? Number.NaN,
      p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
      serverUse: use(this.#servers, 1),
      postgresUse: use(this.#cells, postgresCores),
    };
  }

  #call(): void {
    const { servers, cells, callsPerSecond, costs, random } = this.#scenario;
    const server = this.#servers[Math.floor(random() * servers)] as Server;
    const cell = Math.floor(random() * cells);
    const lane = Math.floor(random() * LANE_COUNT);
    const arrivedAt = this.#events.now;
    const end = () => this.#latencies.push(this.#events.now - arrivedAt);
    const settle = () => this.#submit(server, cell, "billing", lane, end);
    const hold = () => this.#submit(server, cell, "billing", lane, settle);
    const admit = () => this.#submit(server, cell, "admission", lane, hold);
    this.#work(server, costs.serverPerCall / STEPS, admit);
    // Exponential pauses are those of independent callers.
    this.#events.after((-Math.log(1 - random()) * 1_000) / callsPerSecond, () => this.#call());
  }

  #work(server: Server, micros: number, then: () => void): void {
    const ms = micros / 1_000;
    server.freeAt = Math.max(server.freeAt, this.#events.now) + ms;
    server.busyMs += ms;
    this.#events.at(server.freeAt, then);
  }

  #submit(server: Server, cell: number, kind: Kind, lane: number, then: () => void): void {
    const batcher = (server.batchers[cell] as Record<Kind, Batcher>)[kind];
    const micros = this.#scenario.costs.serverPerCall / STEPS;
    batcher.waiting.push({ lane, done: () => this.#work(server, micros, then) });
    if (!batcher.isBusy) this.#send(server, this.#cells[cell] as Cell, batcher);
  }

  #send(server: Server, cell: Cell, batcher: Batcher): void {
    const { costs } = this.#scenario;
    const items = batcher.waiting.splice(0, MAX_BATCH[batcher.kind]);
    batcher.isBusy = items.length > 0;
    if (!batcher.isBusy) return;
    this.#sizes[batcher.kind].items += items.length;
    this.#sizes[batcher.kind].batches++;
    this.#work(server, costs.serverPerStatement, () => {
      const finish = () =>
        this.#events.after(costs.roundTripMs / 2, () => {
          for (const { done } of items) done();
          this.#send(server, cell, batcher);
        });
      this.#events.after(costs.roundTripMs / 2, () => {
        if (batcher.kind === "billing") this.#bill(cell, items, finish);
        else this.#execute(cell, "admission", items, finish);
      });
    });
  }

  /** Waits for the lanes without using a core. */
  #bill(cell: Cell, items: readonly Item[], then: () => void): void {
    if (items.some(({ lane }) => cell.locked.has(lane))) {
      cell.waiting.push({ items, then });
      return;
    }
    for (const { lane } of items) cell.locked.add(lane);
    this.#execute(cell, "billing", items, () => {
      for (const { lane } of items) cell.locked.delete(lane);
      then();
      for (const next of cell.waiting.splice(0)) this.#bill(cell, next.items, next.then);
    });
  }

  #execute(cell: Cell, kind: Kind, items: readonly Item[], then: () => void): void {
    const { costs } = this.#scenario;
    const ms =
      (costs.postgresPerStatement + (costs.postgresPerCall / STATEMENTS_OF_CALL) * items.length) / 1_000;
    const core = cell.cores.indexOf(Math.min(...cell.cores));
    const endsAt = Math.max(cell.cores[core] ?? 0, this.#events.now) + ms;
    cell.cores[core] = endsAt;
    cell.busyMs += ms;
    this.#events.at(kind === "billing" ? endsAt + costs.commitMs : endsAt, then);
  }
}

function createBatcher(kind: Kind): Batcher {
  return { kind, waiting: [], isBusy: false };
}
