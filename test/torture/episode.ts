import { setTimeout as wait } from "node:timers/promises";
import type { Lane } from "../../src/domain/lane.ts";
import { Random } from "../fuzz/random.ts";
import type { Arena } from "./arena.ts";
import { groupBy, ofCells, type Violation, type Window } from "./checker/facts.ts";
import { checkCounters } from "./checker/limit-counters.ts";
import { isDuring } from "./checker/lost-commits.ts";
import { checkMoney } from "./checker/money.ts";
import { Client } from "./client.ts";
import type { Fault } from "./faults/fault.ts";
import { type Entry, History, isReply, isUnplannedFailure } from "./history.ts";
import { type GivenBack, watchHolds } from "./hold-watch.ts";
import { runLoad } from "./load.ts";
import { type Purchase, planPurchases, runPurchases } from "./payments.ts";
import { FUNDED_MAX_TOKENS, planCalls } from "./plan.ts";
import { PRICE_SETS, type PriceSet } from "./prices.ts";
import { createTenants, FUNDED_CALLS, fundedCallMicros, Operator, type Tenants } from "./tenants.ts";
import { promptOf } from "./upstream.ts";
import { within } from "./within.ts";

export type EpisodeOptions = {
  readonly arena: Arena;
  readonly seed: number;
  readonly number: number;
  readonly seconds: number;
  readonly perSecond: number;
  /** Several faults run one after the other or at once. */
  readonly faults: readonly Fault[];
};

/** The records of an episode. The checker reads them after all calls have ended. */
export type Episode = {
  readonly name: string;
  readonly isCalm: boolean;
  /** Whether the state in a server's memory may have been lost. */
  readonly losesServers: boolean;
  readonly tenants: Tenants;
  readonly history: History;
  readonly purchases: readonly Purchase[];
  readonly faultWindows: readonly Window[];
  readonly healedAt: number;
  readonly databaseKills: readonly number[];
  /** When the database committed what it may have lost. */
  readonly lostCommits: Window | undefined;
  /** When servers may have used two primaries. */
  readonly splitBrain: Window | undefined;
  /** The lanes of a cell that failed; undefined if no cell alone failed. */
  readonly failedLanes: ReadonlySet<Lane> | undefined;
  /** Whether the database's clock differed from that of this machine. */
  readonly hasClockSteps: boolean;
  /** Resolve when the holds of killed servers are released. */
  readonly givenBack: readonly Promise<GivenBack>[];
  /** Violations found during the episode. */
  readonly violations: readonly Violation[];
  readonly moneyChecks: number;
  /** Number of replies whose ledger row was checked as soon as they arrived. */
  readonly rowChecks: number;
};

const FAULT_AFTER_MS = 1_500;
const MONEY_CHECK_MS = 1_000;
const PRICE_CHANGES = 2;
/** The answer to a query can be lost with its database. The checker reads the same again at the end. */
const QUERY_MS = 30_000;
/** In this time after the last call is planned, all calls, purchases and faults end by their own limits. */
const ENDING_MS = 300_000;

/** Runs load and injects faults meanwhile. */
export async function runEpisode(options: EpisodeOptions): Promise<Episode> {
  const { arena, faults, number, seed, seconds, perSecond } = options;
  const random = new Random(seed * 1_000_003 + number);
  const plan = planCalls({ random, episode: number, seconds, perSecond, servers: arena.servers.length });
  const shopping = new Random(seed * 1_000_033 + number);
  const purchasePlans = planPurchases(shopping, number, seconds, arena.servers.length);
  const funded = plan.find(({ race }) => race === "funds");
  const promptBytes = funded?.reply ? Buffer.byteLength(promptOf(funded.op, funded.reply)) : 0;
  const operator = new Operator(() => `http://127.0.0.1:${arena.servers[0]?.adminPort}`);
  const tenants = await createTenants({
    operator,
    url: arena.servers[0]?.url ?? "",
    endpoint: arena.endpoint,
    stripe: arena.stripe,
    fundedMicros: fundedCallMicros(promptBytes, FUNDED_MAX_TOKENS) * BigInt(FUNDED_CALLS),
  });
  const history = new History();
  const violations: Violation[] = [];
  const faultWindows: Window[] = [];
  const databaseKills: number[] = [];
  const givenBack: Promise<GivenBack>[] = [];
  let hasClockSteps = false;
  let lostCommits: Window | undefined;
  let splitBrain: Window | undefined;
  let failedLanes: ReadonlySet<Lane> | undefined;
  let healedAt: number | undefined;
  const rows = new RowWatch(arena);
  const money = new MoneyWatch(arena, violations);
  const client = new Client(arena.servers);
  const strike = async (fault: Fault, afterMs: number) => {
    await wait(afterMs);
    const from = performance.now();
    await fault.strike({
      arena,
      random,
      victim: random.below(arena.servers.length),
      onDatabaseKill: () => databaseKills.push(performance.now()),
      onHealed: () => {
        healedAt = performance.now();
      },
      onCommitsLost: (window) => {
        lostCommits = window;
      },
      onSplitBrain: (window) => {
        splitBrain = window;
      },
      onCellFailure: (lanes) => {
        failedLanes = new Set(lanes);
      },
      onServerKill: (serverId) => givenBack.push(watchHolds(arena, serverId)),
      onClockStep: () => {
        hasClockSteps = true;
      },
      onViolation: (rule, text) => violations.push({ rule, text }),
    });
    faultWindows.push({ from, to: performance.now() });
  };
  let purchases: readonly Purchase[] = [];
  try {
    const limitMs = seconds * 1_000 + ENDING_MS;
    const calls = runLoad(plan, { client, tenants, history, onEnded: (entry) => rows.look(entry, tenants) });
    [purchases] = await Promise.all([
      within(limitMs, "purchases", runPurchases(arena, tenants, purchasePlans, shopping)),
      within(limitMs, "changes of prices", changePrices(arena, number, seconds)),
      within(limitMs, "calls", calls),
      ...faults.map((fault, i) => within(limitMs, fault.name, strike(fault, FAULT_AFTER_MS + i * 500))),
    ]);
  } finally {
    client.close();
    await Promise.all([rows.stop(), money.stop()]);
  }
  return {
    name: faults.map(({ name }) => name).join(" + "),
    isCalm: faults.every(({ isHarmless }) => isHarmless),
    losesServers: faults.some(({ losesServers }) => losesServers),
    tenants,
    history,
    purchases,
    faultWindows,
    healedAt: healedAt ?? Math.max(...faultWindows.map(({ to }) => to), 0),
    databaseKills,
    lostCommits,
    splitBrain,
    failedLanes,
    hasClockSteps,
    givenBack,
    violations: [...violations, ...rows.violations(lostCommits)],
    moneyChecks: money.checks,
    rowChecks: rows.checks,
  };
}

/**
 * The time from the end of the fault to the sending of the last call that still failed, among the load and
 * the probe after it.
 */
export function recoveryMs({ history, healedAt }: Episode, probeFailedAt: number): number {
  const failed = history.entries.filter(isUnplannedFailure).map(({ plannedAt }) => plannedAt);
  return Math.max(...failed, probeFailedAt, healedAt) - healedAt;
}

/** The prices of the model that customers pay for change while calls run. */
async function changePrices(arena: Arena, episode: number, seconds: number): Promise<void> {
  for (let i = 1; i <= PRICE_CHANGES; i++) {
    await wait((seconds * 1_000) / (PRICE_CHANGES + 1));
    await arena.setPrices(PRICE_SETS[(episode * PRICE_CHANGES + i) % PRICE_SETS.length] as PriceSet);
  }
}

/** The longest time between two successful generations of one server. */
export function outageMs({ history }: Episode): number {
  const ends = groupBy(history.entries.filter(isReply), ({ server }) => server);
  let longest = 0;
  for (const replies of ends.values()) {
    const times = replies.map(({ endedAt }) => endedAt).sort((a, b) => a - b);
    times.forEach((at, i) => {
      longest = Math.max(longest, at - (times[i - 1] ?? at));
    });
  }
  return longest;
}

/** A reply is settled before its last byte is sent, so its row must exist when the reply arrives. */
class RowWatch {
  checks = 0;
  readonly #arena: Arena;
  readonly #withoutRow: Entry[] = [];
  readonly #running = new Set<Promise<void>>();

  constructor(arena: Arena) {
    this.#arena = arena;
  }

  violations(lostCommits: Window | undefined): Violation[] {
    return this.#withoutRow
      .filter((entry) => !isDuring(entry, lostCommits))
      .map(({ requestId }) => ({
        rule: "2 one execution, one ledger entry",
        text: `answered before it was settled: ${requestId}`,
      }));
  }

  look(entry: Entry, tenants: Tenants): void {
    if (!isReply(entry)) return;
    const looked = this.#look(entry, tenants.keys.get(entry.key)?.accountId ?? "").finally(() => this.#running.delete(looked));
    this.#running.add(looked);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #look(entry: Entry, accountId: string): Promise<void> {
    try {
      const id = entry.id.replace("gen_", "led_");
      const rows = await within(
        QUERY_MS,
        `the ledger row of ${entry.requestId}`,
        ofCells(
          this.#arena.owners,
          (owner) => owner`SELECT 1 FROM all_entries WHERE lane = lane_of(${accountId}) AND id = ${id}`,
        ),
      );
      this.checks++;
      if (rows.length === 0) this.#withoutRow.push(entry);
    } catch {
      // The database is unreachable; the checker checks again at the end.
    }
  }
}

/** Repeatedly checks balances against the ledger during the episode. */
class MoneyWatch {
  checks = 0;
  readonly #arena: Arena;
  readonly #violations: Violation[];
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(arena: Arena, violations: Violation[]) {
    this.#arena = arena;
    this.#violations = violations;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        this.#violations.push(...(await within(QUERY_MS, "balances", ofCells(this.#arena.owners, checkMoney))));
        this.#violations.push(...(await within(QUERY_MS, "counters", ofCells(this.#arena.owners, checkCounters))));
        this.checks++;
      } catch {
        // The database is unreachable.
      }
      await wait(MONEY_CHECK_MS);
    }
  }
}
