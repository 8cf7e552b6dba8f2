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

const LANES = 1_024;
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
  const {
    servers: serverCount,
    cells: cellCount,
    postgresCores,
    callsPerSecond,
    seconds,
    costs,
    random,
  } = scenario;
  const events = new EventQueue();
  const cells: Cell[] = Array.from({ length: cellCount }, () => ({
    cores: new Array<number>(postgresCores).fill(0),
    busyMs: 0,
    locked: new Set<number>(),
    waiting: [],
  }));
  const servers: Server[] = Array.from({ length: serverCount }, () => ({
    freeAt: 0,
    busyMs: 0,
    batchers: cells.map(() => ({ admission: createBatcher("admission"), billing: createBatcher("billing") })),
  }));
  const sizes: Record<Kind, { items: number; batches: number }> = {
    admission: { items: 0, batches: 0 },
    billing: { items: 0, batches: 0 },
  };
  const latencies: number[] = [];

  function work(server: Server, micros: number, then: () => void): void {
    const ms = micros / 1_000;
    server.freeAt = Math.max(server.freeAt, events.now) + ms;
    server.busyMs += ms;
    events.at(server.freeAt, then);
  }

  function execute(cell: Cell, kind: Kind, items: readonly Item[], then: () => void): void {
    const ms =
      (costs.postgresPerStatement + (costs.postgresPerCall / STATEMENTS_OF_CALL) * items.length) / 1_000;
    const core = cell.cores.indexOf(Math.min(...cell.cores));
    const endsAt = Math.max(cell.cores[core] ?? 0, events.now) + ms;
    cell.cores[core] = endsAt;
    cell.busyMs += ms;
    events.at(kind === "billing" ? endsAt + costs.commitMs : endsAt, then);
  }

  /** Waits for the lanes without using a core. */
  function bill(cell: Cell, items: readonly Item[], then: () => void): void {
    if (items.some(({ lane }) => cell.locked.has(lane))) {
      cell.waiting.push({ items, then });
      return;
    }
    for (const { lane } of items) cell.locked.add(lane);
    execute(cell, "billing", items, () => {
      for (const { lane } of items) cell.locked.delete(lane);
      then();
      for (const next of cell.waiting.splice(0)) bill(cell, next.items, next.then);
    });
  }

  function send(server: Server, cell: Cell, batcher: Batcher): void {
    const items = batcher.waiting.splice(0, MAX_BATCH[batcher.kind]);
    batcher.isBusy = items.length > 0;
    if (!batcher.isBusy) return;
    sizes[batcher.kind].items += items.length;
    sizes[batcher.kind].batches++;
    work(server, costs.serverPerStatement, () => {
      const finish = () =>
        events.after(costs.roundTripMs / 2, () => {
          for (const { done } of items) done();
          send(server, cell, batcher);
        });
      events.after(costs.roundTripMs / 2, () => {
        if (batcher.kind === "billing") bill(cell, items, finish);
        else execute(cell, "admission", items, finish);
      });
    });
  }

  function submit(server: Server, cell: number, kind: Kind, lane: number, then: () => void): void {
    const batcher = (server.batchers[cell] as Record<Kind, Batcher>)[kind];
    batcher.waiting.push({ lane, done: () => work(server, costs.serverPerCall / STEPS, then) });
    if (!batcher.isBusy) send(server, cells[cell] as Cell, batcher);
  }

  function call(): void {
    const server = servers[Math.floor(random() * serverCount)] as Server;
    const cell = Math.floor(random() * cellCount);
    const lane = Math.floor(random() * LANES);
    const arrivedAt = events.now;
    const end = () => latencies.push(events.now - arrivedAt);
    const settle = () => submit(server, cell, "billing", lane, end);
    const hold = () => submit(server, cell, "billing", lane, settle);
    work(server, costs.serverPerCall / STEPS, () => submit(server, cell, "admission", lane, hold));
    // Exponential pauses are those of independent callers.
    events.after((-Math.log(1 - random()) * 1_000) / callsPerSecond, call);
  }

  events.at(0, call);
  events.runUntil(seconds * 1_000);
  latencies.sort((a, b) => a - b);
  const mean = ({ items, batches }: { items: number; batches: number }) => items / Math.max(batches, 1);
  const use = (parts: readonly { busyMs: number }[], cores: number) =>
    parts.reduce((sum, { busyMs }) => sum + busyMs, 0) / (parts.length * cores * seconds * 1_000);
  return {
    completedPerSecond: latencies.length / seconds,
    admissionBatch: mean(sizes.admission),
    billingBatch: mean(sizes.billing),
    p50Ms: latencies[Math.floor(latencies.length * 0.5)] ?? Number.NaN,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
    serverUse: use(servers, 1),
    postgresUse: use(cells, postgresCores),
  };
}

function createBatcher(kind: Kind): Batcher {
  return { kind, waiting: [], isBusy: false };
}
