import { MODEL } from "./settings.ts";

export const METRICS = ["cost", "tokens", "generations", "concurrent"] as const;

/** What limits count that refuse calls. */
export type Metric = (typeof METRICS)[number];

/** A limit as the APIs take it. */
export type LimitSpec = {
  readonly metric: Metric | "cost_alert";
  readonly window?: "minute" | "hour" | "day" | "week" | "month" | "total";
  readonly model?: string;
  readonly per?: "user";
  readonly amount: number;
  readonly temporaryAmount?: number;
  /** How long the temporary amount is valid. */
  readonly temporaryMs?: number;
};

/** The JSON of both APIs, at the time of the request. */
export function limitJson({ temporaryMs, temporaryAmount, ...limit }: LimitSpec): object {
  if (temporaryMs === undefined) return limit;
  const temporaryUntil = new Date(Date.now() + temporaryMs).toISOString();
  return { ...limit, temporaryAmount, temporaryUntil };
}

/** Above everything that an episode uses: limits that refuse nothing, of which the checker adds up what they count. */
const NEVER = 9_000_000_000_000_000;

export const RICH_ACCOUNT_LIMITS: readonly LimitSpec[] = [
  { metric: "concurrent", amount: NEVER },
  { metric: "tokens", window: "minute", amount: NEVER },
  { metric: "tokens", window: "hour", model: MODEL.id, amount: NEVER },
  { metric: "cost", window: "month", amount: NEVER },
  { metric: "generations", window: "week", amount: NEVER },
  { metric: "cost", window: "total", per: "user", amount: NEVER },
  // Calls go on when it is used up.
  { metric: "cost_alert", window: "day", amount: 1_000 },
];
export const RICH_KEY_LIMITS: readonly LimitSpec[] = [
  { metric: "concurrent", model: MODEL.id, amount: NEVER },
  { metric: "cost", window: "minute", amount: NEVER },
  { metric: "tokens", window: "total", amount: NEVER },
];

export const RICH_PLAN_LIMITS: readonly LimitSpec[] = [{ metric: "generations", window: "day", amount: NEVER }];

/** The limits below refuse calls. Their generations hold about 200 tokens and 400 micros, and use a quarter of that. */
export const LIMITED_PLAN_LIMITS: readonly LimitSpec[] = [{ metric: "generations", window: "day", amount: 30 }];

type LimitedKey = {
  readonly name: string;
  /** The key that creates it; without one, an operator does. */
  readonly parent?: string;
  readonly limits: readonly LimitSpec[];
};

/** The key whose limits change. */
export const CHANGING_KEY = "changing";

export const LIMITED_ACCOUNTS: readonly {
  readonly limits: readonly LimitSpec[];
  readonly keys: readonly LimitedKey[];
}[] = [
  {
    limits: [
      { metric: "generations", window: "week", amount: 20 },
      { metric: "concurrent", amount: 4 },
    ],
    keys: [
      { name: "running", limits: [{ metric: "concurrent", amount: 3 }] },
      { name: "running child", parent: "running", limits: [{ metric: "concurrent", model: MODEL.id, amount: 2 }] },
      { name: "running grandchild", parent: "running child", limits: [] },
    ],
  },
  {
    limits: [],
    keys: [
      { name: "budget", limits: [{ metric: "tokens", window: "hour", model: MODEL.id, amount: 700 }] },
      { name: "budget child", parent: "budget", limits: [{ metric: "tokens", window: "minute", amount: 800 }] },
      { name: "spender", limits: [{ metric: "cost", window: "month", amount: 800 }] },
      {
        name: "users",
        limits: [
          { metric: "concurrent", per: "user", amount: 1 },
          { metric: "cost", window: "total", per: "user", amount: 450 },
          { metric: "tokens", window: "week", per: "user", amount: 600 },
        ],
      },
      { name: CHANGING_KEY, limits: [{ metric: "generations", window: "month", amount: 5 }] },
    ],
  },
];

export const LIMITED_KEYS: readonly string[] = LIMITED_ACCOUNTS.flatMap(({ keys }) => keys.map(({ name }) => name));

/** The end users of calls with limits; calls without a user share the limits per user. */
export const LIMITED_USERS: readonly (string | undefined)[] = ["ada", "bo", undefined];

/** Above the limit of "running", which therefore cannot create a key with it. */
export const ABOVE: LimitSpec = { metric: "concurrent", amount: 4 };

/** The limits that CHANGING_KEY gets one after the other, each after a share of the episode. */
export const LIMIT_CHANGES: readonly { readonly at: number; readonly limits: readonly LimitSpec[] }[] = [
  { at: 0.2, limits: [{ metric: "generations", window: "month", amount: 10 }] },
  {
    at: 0.35,
    limits: [
      { metric: "generations", window: "month", amount: 10, temporaryAmount: 15, temporaryMs: 1_000 },
      { metric: "concurrent", amount: 3 },
      { metric: "tokens", window: "day", amount: 3_000 },
    ],
  },
  // While calls hold all three.
  { at: 0.42, limits: [{ metric: "tokens", window: "day", amount: 3_000 }] },
  { at: 0.5, limits: [] },
  {
    at: 0.6,
    limits: [
      { metric: "generations", window: "month", amount: 25 },
      { metric: "tokens", window: "month", amount: 2_000 },
    ],
  },
  { at: 0.8, limits: [{ metric: "generations", window: "month", amount: 8 }] },
];
