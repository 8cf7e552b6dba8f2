import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import type { LimitMetric } from "../../src/domain/limit.ts";
import { usageOf } from "../../src/domain/price.ts";
import { type LimitOwner, listLimits, removeLimit } from "../../src/limits/store.ts";
import { putPlan } from "../../src/plans/store.ts";
import { TEST_ACTION } from "../support/action.ts";
import { createChild, passTime, setTestLimit } from "../support/limits.ts";
import { createPayer, endOf, holdOf, newGenerationId, type Payer } from "../support/payer.ts";
import { runs } from "../support/runs.ts";
import { useStore } from "../support/store.ts";
import { UncheckedBilling } from "../support/unchecked-billing.ts";

/** Random interleavings of holds, settlements, voids, windows and changed limits, against a reference that only adds up. */

const store = useStore();
/** Two servers. */
let servers: readonly UncheckedBilling[];
let plans = 0;

beforeAll(() => {
  servers = ["one", "two"].map((name) => new UncheckedBilling(store.database, name));
});

const OWNERS = ["account", "parent", "child", "other", "plan"] as const;
const USERS = ["", 'a "user" \\ é', "bob"];
const MODELS = ["m", "n"];

type Definition = {
  readonly owner: (typeof OWNERS)[number];
  readonly metric: LimitMetric;
  readonly isTotal: boolean;
  readonly model: string;
  readonly perUser: boolean;
};
const definition = fc.record<Definition>({
  owner: fc.constantFrom(...OWNERS),
  metric: fc.constantFrom("cost", "tokens", "generations", "concurrent"),
  isTotal: fc.boolean(),
  model: fc.constantFrom("", ...MODELS),
  perUser: fc.boolean(),
});
const place = fc.record({
  do: fc.constant("hold" as const),
  key: fc.nat(2),
  user: fc.constantFrom(...USERS),
  model: fc.constantFrom(...MODELS),
  amount: fc.nat(6),
  tokens: fc.nat(6),
});
const settle = fc.record({ do: fc.constant("settle" as const), of: fc.nat(30), cost: fc.nat(6), tokens: fc.nat(6) });
const step = fc.oneof(
  { weight: 8, arbitrary: place },
  { weight: 5, arbitrary: settle },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("void" as const), of: fc.nat(30) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("set" as const), limit: definition, amount: fc.nat(14) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("remove" as const), of: fc.nat(10) }) },
  { weight: 1, arbitrary: fc.constant({ do: "next day" as const }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

type Call = { readonly key: number; readonly user: string; readonly model: string };
type Entry = Call & { readonly day: number; readonly cost: number; readonly tokens: number };
type Limit = Definition & { readonly id: string; amount: number; readonly since: number };
type Hold = Call & { id: string; isOpen: boolean; readonly amount: number; names: Map<string, number> };

/** The keys of the test: a parent, its child, and another key. */
const ANCESTORS = [[0], [0, 1], [2]];

/** What must happen. */
class Reference {
  readonly entries: Entry[] = [];
  readonly limits: Limit[] = [];
  readonly holds: Hold[] = [];
  day = 0;

  /** The limits that apply to a call, each with the keys whose calls its counter counts. */
  counters(call: Call): { limit: Limit; keys: readonly number[]; name: string }[] {
    return this.limits
      .filter(({ model }) => model === "" || model === call.model)
      .flatMap((limit) => {
        const user = limit.perUser ? call.user : "";
        const path = ANCESTORS[call.key] as number[];
        const subjects =
          limit.owner === "account"
            ? ["account"]
            : limit.owner === "plan"
              ? path
              : path.filter((key) => key === OWNERS.indexOf(limit.owner) - 1);
        return subjects.map((subject) => ({
          limit,
          keys: [0, 1, 2].filter((key) => subject === "account" || ANCESTORS[key]?.includes(subject as number)),
          name: `${limit.id} ${subject} ${user}`,
        }));
      });
  }

  spent(limit: Limit, keys: readonly number[], call: Call): number {
    return this.entries
      .filter(
        (entry, at) =>
          at >= limit.since &&
          (limit.isTotal || entry.day === this.day) &&
          (limit.model === "" || entry.model === limit.model) &&
          (!limit.perUser || entry.user === call.user) &&
          keys.includes(entry.key),
      )
      .reduce((sum, entry) => sum + amountOf(limit.metric, entry.cost, entry.tokens, 0), 0);
  }

  held(name: string): number {
    return this.holds.reduce((sum, hold) => sum + (hold.isOpen ? (hold.names.get(name) ?? 0) : 0), 0);
  }

  /** The ids of the limits that may be reported; empty if the hold is placed. */
  place(hold: Hold, tokens: number): string[] {
    const refusals: { id: string; wait: number }[] = [];
    for (const { limit, keys, name } of this.counters(hold)) {
      const needed = amountOf(limit.metric, hold.amount, tokens, 1);
      const [spent, held] = [this.spent(limit, keys, hold), this.held(name)];
      hold.names.set(name, needed);
      if (spent + held + needed <= limit.amount) continue;
      const isRunningOnly = needed <= limit.amount && spent + needed <= limit.amount;
      const hasNoReset = limit.isTotal || limit.metric === "concurrent" || needed > limit.amount;
      refusals.push({ id: limit.id, wait: isRunningOnly ? 0 : hasNoReset ? 2 : 1 });
    }
    const longest = Math.max(...refusals.map(({ wait }) => wait));
    hold.isOpen = refusals.length === 0;
    return refusals.filter(({ wait }) => wait === longest).map(({ id }) => id);
  }
}

function amountOf(metric: LimitMetric, cost: number, tokens: number, running: number): number {
  return { cost, tokens, generations: 1, concurrent: running }[metric];
}

class World {
  readonly reference = new Reference();
  readonly keys: readonly Payer[];
  readonly plan: string;

  constructor(keys: readonly Payer[], plan: string) {
    this.keys = keys;
    this.plan = plan;
  }

  ownerOf(owner: Definition["owner"]): LimitOwner {
    if (owner === "plan") return { kind: "plan", id: this.plan };
    if (owner === "account") return { kind: "account", id: this.keys[0]?.accountId ?? "" };
    return { kind: "key", id: this.keys[OWNERS.indexOf(owner) - 1]?.keyId ?? "" };
  }

  async run(step: Step, at: number): Promise<void> {
    const server = servers[at % 2] as UncheckedBilling;
    const { reference } = this;
    switch (step.do) {
      case "hold":
        return await this.hold(server, step);
      case "set":
        return await this.set(step.limit, step.amount);
      case "remove": {
        const [limit] = reference.limits.splice(step.of % Math.max(1, reference.limits.length), 1);
        if (limit) await removeLimit(store.database, TEST_ACTION, this.ownerOf(limit.owner), limit.id);
        return;
      }
      case "next day":
        return await this.passDay();
      case "settle":
      case "void": {
        const hold = reference.holds[step.of % Math.max(1, reference.holds.length)];
        if (!hold) return;
        const cost = step.do === "settle" ? Math.min(step.cost, hold.amount) : undefined;
        const end = endOf(this.keys[hold.key] as Payer, hold.id, cost === undefined ? undefined : BigInt(cost));
        const tokens = step.do === "settle" ? step.tokens : 0;
        const { charge } = end;
        const usage = usageOf({ inputTokens: tokens, outputTokens: 0 });
        const { user, model } = hold;
        await server.end({ ...end, charge: charge && { ...charge, usage, user, model } });
        if (!hold.isOpen) return;
        hold.isOpen = false;
        if (cost !== undefined) {
          reference.entries.push({ key: hold.key, user, model, day: reference.day, cost, tokens });
        }
      }
    }
  }

  async hold(server: UncheckedBilling, step: Extract<Step, { do: "hold" }>): Promise<void> {
    const { key, user, model, amount, tokens } = step;
    const payer = this.keys[key] as Payer;
    const id = newGenerationId(payer);
    const hold: Hold = { key, user, model, amount, id, isOpen: false, names: new Map() };
    const outcome = await server.hold({ ...holdOf(payer, BigInt(amount), id), user, model, tokens });
    const refusals = this.reference.place(hold, tokens);
    this.reference.holds.push(hold);
    if (refusals.length === 0) expect(outcome).toMatchObject({ outcome: "held" });
    else expect(refusals).toContain((outcome as { limitId?: string }).limitId);
  }

  async set(limit: Definition, amount: number): Promise<void> {
    const { limits, entries } = this.reference;
    const window = limit.metric === "concurrent" ? "" : limit.isTotal ? "total" : "day";
    const { metric, model, perUser } = limit;
    const changes = { metric, model, perUser, window, amount: BigInt(amount) } as const;
    const id = await setTestLimit(store.database, this.ownerOf(limit.owner), changes);
    const known = limits.find((other) => other.id === id);
    if (known) known.amount = amount;
    // A new limit of a plan starts at zero.
    else limits.push({ ...limit, id, amount, since: limit.owner === "plan" ? entries.length : 0 });
  }

  /** Moves everything that the database knows of the account a day back. */
  async passDay(): Promise<void> {
    this.reference.day++;
    const account = this.keys[0]?.accountId ?? "";
    await passTime(store.owner, account, "1 day");
    await store.owner`UPDATE vx.usage_quarters SET quarter = quarter - 96 WHERE account_id = ${account}`;
  }

  async check(): Promise<void> {
    for (const [key, { keyId }] of this.keys.entries()) {
      for (const user of USERS) {
        const rows = await listLimits(store.database, { kind: "key", id: keyId }, user);
        const own = rows.filter(({ id }) => id !== "");
        const expected = MODELS.flatMap((model) => this.reference.counters({ key, user, model }));
        const found = own.map((row) => [row.id, Number(row.spent), Number(row.held)].join(" "));
        const wanted = [...new Map(expected.map((counter) => [counter.name, counter])).values()].map(({ limit, keys, name }) =>
          [limit.id, this.reference.spent(limit, keys, { key, user, model: "" }), this.reference.held(name)].join(" "),
        );
        expect(found.sort()).toEqual(wanted.sort());
      }
    }
  }
}

async function createWorld(): Promise<World> {
  const plan = `plan-${plans++}`;
  const limits = { rpm: 1_000, max_active_keys: 100, max_keys_created_per_hour: undefined };
  await putPlan(store.database, TEST_ACTION, { name: plan, ...limits });
  const parent = await createPayer(store.database, 1_000_000n);
  const keys = [parent, await createChild(store.database, parent)];
  // The other key belongs to the account, but not to the parent.
  const other = await createChild(store.database, parent);
  await store.owner`UPDATE vx.keys SET ancestors = '{}' WHERE id = ${other.keyId}`;
  keys.push(other);
  await store.owner`UPDATE vx.keys SET plan = ${plan} WHERE account_id = ${parent.accountId}`;
  return new World(keys, plan);
}

test("random holds, settlements, voids, windows and changed limits have the results of plain arithmetic", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
      const world = await createWorld();
      for (const [at, one] of steps.entries()) await world.run(one, at);
      await world.check();
    }),
    { numRuns: runs(10) },
  );
});
