import type { Random } from "../fuzz/random.ts";
import { ABOVE, CHANGING_KEY, LIMIT_CHANGES, LIMITED_KEYS, LIMITED_USERS, type LimitSpec } from "./limits.ts";
import { OWN_PRICES, PRICED_MODEL, RERATINGS, type Terms } from "./prices.ts";
import { CUSTOMERS, EXPIRING, FUNDED_CALLS, KEY_CAP, type KeyName, RICH_KEYS, TIGHT_LIMIT, VICTIMS } from "./tenants.ts";
import type { ReplyPlan } from "./upstream.ts";

export type CallKind =
  | "generate"
  | "stream"
  | "me"
  | "models"
  | "ledger"
  | "events"
  | "create_key"
  | "revoke_key"
  | "set_limits"
  | "credit"
  | "refund_entry"
  | "rerate"
  | "set_prices"
  | "bad_field"
  | "unknown_model"
  | "no_key";

/** One call to send, independent of the outcome of earlier calls. */
export type PlannedCall = {
  /** Number of the operation; repeated calls with the same idempotency key share it, and refunds of the same charge. */
  readonly op: number;
  readonly requestId: string;
  readonly atMs: number;
  readonly server: number;
  readonly kind: CallKind;
  readonly key: KeyName;
  readonly reply?: ReplyPlan;
  /** That of a generation, if it is not the model of most calls. */
  readonly model?: string;
  readonly maxTokens?: number;
  readonly idempotencyKey?: string;
  /** The key to revoke or to change. */
  readonly victim?: KeyName;
  /** The limits of the key to create or to change. */
  readonly limits?: readonly LimitSpec[];
  /** How much of the charge of the key's last generation is refunded; 0 for all that is left. */
  readonly micros?: number;
  /** Which of the re-ratings. */
  readonly rerating?: number;
  /** What the account of the key gets in place of the prices of the model. */
  readonly terms?: Terms;
  /** The end user of a generation. */
  readonly user?: string;
  /** The caller disconnects after this time. */
  readonly leavesAfterMs?: number;
  /** The caller's deadline. REST has none, so such a call goes over Connect. */
  readonly deadlineMs?: number;
  readonly race?: "funds" | "rate" | "cap" | "revocation" | "limits";
};

export type PlanOptions = {
  readonly random: Random;
  readonly episode: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly servers: number;
};

const OPS_PER_EPISODE = 100_000;
const REFUND_PARTS = 5;
export const FUNDED_MAX_TOKENS = 30;

/** The plan depends only on the seed, to the millisecond. */
export function planCalls(options: PlanOptions): PlannedCall[] {
  const planner = new Planner(options);
  planner.addMix();
  planner.addRaces();
  planner.addLimits();
  planner.addExpiries();
  planner.addPriceChanges();
  return planner.calls.sort((a, b) => a.atMs - b.atMs);
}

class Planner {
  readonly calls: PlannedCall[] = [];
  readonly #options: PlanOptions;
  #op: number;

  constructor(options: PlanOptions) {
    this.#options = options;
    this.#op = options.episode * OPS_PER_EPISODE;
  }

  /** Adds calls of every kind. Their arrivals are independent of each other and of the responses. */
  addMix(): void {
    const { random, seconds, perSecond } = this.#options;
    const endMs = seconds * 1_000;
    for (let atMs = 0; ; ) {
      atMs += (-Math.log(1 - random.next()) * 1_000) / perSecond;
      if (atMs >= endMs) return;
      const key = random.pick(RICH_KEYS);
      const dice = random.next();
      if (dice < 0.3) this.#addGeneration("generate", atMs, key);
      else if (dice < 0.5) this.#addGeneration("stream", atMs, key);
      else if (dice < 0.7) this.#addLimited(atMs, random.pick(LIMITED_KEYS));
      else if (dice < 0.73) this.#add({ kind: "me", atMs, key });
      else if (dice < 0.82) this.#addPriced(atMs, random.pick(CUSTOMERS));
      else if (dice < 0.84) this.#add({ kind: "models", atMs, key });
      else if (dice < 0.86) this.#add({ kind: "ledger", atMs, key });
      else if (dice < 0.88) this.#add({ kind: "events", atMs, key });
      else if (dice < 0.895) this.#add({ kind: "create_key", atMs, key });
      else if (dice < 0.91) this.#addRefund(atMs, random.pick([...PRICED_KEYS, ...CUSTOMERS]));
      else if (dice < 0.94) this.#addCredit(atMs, key);
      else this.#addRefused(atMs, key);
    }
  }

  /** Adds concurrent callers that compete for a limited resource. */
  addRaces(): void {
    const { random, seconds } = this.#options;
    const at = () => (0.1 + random.next() * 0.7) * seconds * 1_000;
    const burst = (startMs: number) => startMs + random.next() * 150;
    const funds = at();
    for (let i = 0; i < FUNDED_CALLS * 10; i++) {
      const reply: ReplyPlan = { ...REPLY, pieces: 3, firstMs: 5, gapMs: 2, mode: "boast", inputTokens: 100, outputTokens: 100 };
      const kind = i % 2 === 0 ? "generate" : "stream";
      this.#add({ kind, atMs: burst(funds), key: "poor", reply, maxTokens: FUNDED_MAX_TOKENS, race: "funds" });
    }
    // Consecutive bursts: a window that one has used up must stay used up for the next.
    for (const share of [0.1, 0.35, 0.5, 0.75]) {
      const rate = share * seconds * 1_000;
      for (let i = 0; i < TIGHT_LIMIT * 1.5; i++) {
        this.#add({ kind: "models", atMs: burst(rate), key: "tight", race: "rate" });
      }
    }
    const cap = at();
    for (let i = 0; i < KEY_CAP * 4; i++) this.#add({ kind: "create_key", atMs: burst(cap), key: "capped", race: "cap" });
    for (let i = 0; i < VICTIMS; i++) this.#addRevocation(`victim${i}`, RICH_KEYS[(i % 3) * 2] as KeyName, at());
  }

  /** Concurrent calls of all keys with limits, and changes of one's limits, also while its calls run. */
  addLimits(): void {
    const { random, seconds } = this.#options;
    const burst = (0.1 + random.next() * 0.3) * seconds * 1_000;
    for (const key of LIMITED_KEYS) {
      for (let i = 0; i < 8; i++) this.#addLimited(burst + random.below(150), key);
    }
    for (const { at, limits } of LIMIT_CHANGES) {
      const atMs = at * seconds * 1_000;
      this.#add({ kind: "set_limits", atMs, key: CHANGING_KEY, victim: CHANGING_KEY, limits, race: "limits" });
      // They still run at the next change.
      for (let i = 0; i < 4; i++) this.#addLimited(atMs - 100 + i * 100, CHANGING_KEY, 20);
      this.#add({ kind: "create_key", atMs, key: "running", limits: [ABOVE], race: "limits" });
    }
  }

  /** Calls of accounts whose credit expires meanwhile. */
  addExpiries(): void {
    for (const [key, expiresMs] of EXPIRING)
      for (let atMs = expiresMs - 300; atMs < expiresMs + 1_200; atMs += 100)
        this.#add({ kind: "generate", atMs, key, reply: REPLY, maxTokens: 50 });
  }

  /** Discounts and prices of accounts, and re-ratings, each at several servers at once and once more later. */
  addPriceChanges(): void {
    const { seconds, servers } = this.#options;
    for (const { at, key, terms } of TERM_CHANGES) this.#add({ kind: "set_prices", atMs: at * seconds * 1_000, key, terms });
    for (const rerating of RERATINGS.keys()) {
      const atMs = (0.5 + 0.2 * rerating) * seconds * 1_000;
      for (let server = 0; server < servers; server++) this.#add({ kind: "rerate", atMs, key: "", rerating, server });
      this.#add({ kind: "rerate", atMs: atMs + 0.25 * seconds * 1_000, key: "", rerating });
    }
  }

  #addPriced(atMs: number, key: KeyName): void {
    const { random } = this.#options;
    const pieces = 1 + random.below(12);
    const reply: ReplyPlan = { ...REPLY, pieces, inputTokens: 10 + random.below(60), outputTokens: pieces };
    const kind = random.pick(["generate", "stream"] as const);
    this.#add({ kind, atMs, key, reply, model: PRICED_MODEL, maxTokens: 20 });
  }

  /** Refunds the last charge: twice with one idempotency key, or in parts that exceed it together. */
  #addRefund(atMs: number, key: KeyName): void {
    const { random, servers } = this.#options;
    const op = this.#op++;
    const refund = { kind: "refund_entry", key, idempotencyKey: `refund-${op}` } as const;
    if (random.chance(0.5)) {
      const micros = random.pick([0, 100, 300, 700]);
      for (const laterMs of [0, random.below(100)]) this.#add({ ...refund, micros, atMs: atMs + laterMs, op });
      // The same key for a later charge.
      this.#add({ ...refund, micros, atMs: atMs + 1_000 });
      return;
    }
    for (let part = 0; part < REFUND_PARTS; part++) {
      // One at each server at once, and the others one after the other. Some have the same key.
      const laterMs = Math.max(0, part - servers + 1) * 100;
      const idempotencyKey = `${refund.idempotencyKey}-${random.below(3 * REFUND_PARTS)}`;
      const micros = random.pick([0, 1_500, 3_000, 4_500]);
      const server = part % servers;
      this.#add({ ...refund, idempotencyKey, micros, atMs: atMs + laterMs, op, server });
    }
  }

  #addLimited(atMs: number, key: KeyName, pieces = 2 + this.#options.random.below(8)): void {
    const { random } = this.#options;
    const reply: ReplyPlan = { ...REPLY, pieces, gapMs: 30, outputTokens: pieces };
    const user = random.pick(LIMITED_USERS);
    const kind = random.pick(["generate", "stream"] as const);
    const common = { kind, atMs, key, reply, maxTokens: 60, race: "limits" as const };
    this.#add(user === undefined ? common : { ...common, user });
  }

  #addRevocation(victim: KeyName, by: KeyName, atMs: number): void {
    const { servers } = this.#options;
    const race = "revocation";
    for (let server = 0; server < servers; server++) {
      const reply: ReplyPlan = { ...REPLY, pieces: 60, gapMs: 50, outputTokens: 60 };
      this.#add({ kind: "stream", atMs: Math.max(0, atMs - 500), key: victim, reply, maxTokens: 200, server, race });
      for (let i = -10; i < 30; i++) {
        const kind = (["me", "models", "generate"] as const)[(i + 30) % 3] as CallKind;
        const short = kind === "generate" ? { reply: { ...REPLY, pieces: 2, outputTokens: 2 }, maxTokens: 50 } : {};
        this.#add({ kind, atMs: atMs + i * 30, key: victim, server, race, ...short });
      }
    }
    this.#add({ kind: "revoke_key", atMs, key: by, victim, race });
  }

  #addGeneration(kind: "generate" | "stream", atMs: number, key: KeyName): void {
    const { random } = this.#options;
    const pieces = 1 + random.below(12);
    const dice = random.next();
    const mode =
      dice < 0.88
        ? "fine"
        : dice < 0.9
          ? "flaky"
          : dice < 0.92
            ? "refuse"
            : dice < 0.95
              ? "break"
              : dice < 0.98
                ? "mute"
                : "boast";
    const reply: ReplyPlan = {
      pieces,
      firstMs: random.below(40),
      gapMs: random.below(25),
      mode,
      inputTokens: 10 + random.below(60),
      outputTokens: pieces,
    };
    const maxTokens = pieces + 10 + random.below(100);
    const op = this.#op;
    const idempotencyKey = random.chance(0.3) ? `op-${op}` : undefined;
    const leaves = random.chance(0.1) ? { leavesAfterMs: 1 + random.below(200) } : {};
    const hasDeadline = kind === "generate" && random.chance(0.15);
    const deadline = hasDeadline ? { deadlineMs: 1 + random.below(200) } : {};
    const common = {
      kind,
      key,
      reply,
      maxTokens,
      ...(PRICED_KEYS.includes(key) ? { model: PRICED_MODEL } : {}),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    };
    this.#add({ ...common, ...leaves, ...deadline, atMs });
    if (idempotencyKey === undefined) return;
    const repeats = random.below(3);
    for (let i = 0; i < repeats; i++) {
      // Retries at once, while the first call runs, and long after.
      const laterMs = random.pick([0, 5, 60, 400, 1_500]) * (0.5 + random.next());
      this.#add({ ...common, op, atMs: atMs + laterMs });
    }
  }

  #addCredit(atMs: number, key: KeyName): void {
    const { random } = this.#options;
    const op = this.#op;
    const idempotencyKey = `credit-${op}`;
    this.#add({ kind: "credit", atMs, key, idempotencyKey });
    if (random.chance(0.5)) this.#add({ kind: "credit", atMs: atMs + random.below(300), key, idempotencyKey, op });
  }

  #addRefused(atMs: number, key: KeyName): void {
    const { random } = this.#options;
    const generation = { reply: REPLY, maxTokens: 50 };
    const kind = random.pick(["generate", "stream"] as const);
    const refused: readonly Pick<PlannedCall, "kind" | "key">[] = [
      { kind: "bad_field", key },
      { kind: "unknown_model", key },
      { kind: "no_key", key },
      { kind, key: "wrong" },
      { kind, key: "narrow" },
    ];
    this.#add({ ...random.pick(refused), ...generation, atMs });
  }

  #add(call: Omit<PlannedCall, "op" | "requestId" | "server"> & { op?: number; server?: number }): void {
    const { random, servers, episode } = this.#options;
    const op = call.op ?? this.#op++;
    const server = call.server ?? random.below(servers);
    this.calls.push({ ...call, op, server, requestId: `t${episode}-${this.calls.length}-${op}` });
  }
}

/** Keys of an account with a large balance, all of whose generations use the model with changing prices. */
const PRICED_KEYS: readonly KeyName[] = RICH_KEYS.slice(-2);

/** Each takes effect after a share of the episode. */
const TERM_CHANGES: readonly { readonly at: number; readonly key: KeyName; readonly terms: Terms }[] = [
  { at: 0.15, key: "customer1", terms: { discount: 2_000 } },
  { at: 0.2, key: "rich4", terms: { discount: 1_500 } },
  { at: 0.35, key: "rich5", terms: { prices: OWN_PRICES } },
  { at: 0.45, key: "rich4", terms: {} },
  { at: 0.6, key: "customer1", terms: {} },
  { at: 0.65, key: "rich4", terms: { discount: 3_333 } },
];

const REPLY: ReplyPlan = { pieces: 4, firstMs: 5, gapMs: 5, mode: "fine", inputTokens: 20, outputTokens: 4 };
