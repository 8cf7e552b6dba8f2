/** What a limit counts: cost in micros, tokens, generations, or running generations. */
export type LimitMetric = "cost" | "tokens" | "generations" | "concurrent";

/** In UTC; weeks start on Monday. Empty for "concurrent". */
export type LimitWindow = "" | "minute" | "hour" | "day" | "week" | "month" | "total";

/** A limit as its owner sets it. */
export type LimitToSet = {
  readonly metric: LimitMetric;
  readonly window: LimitWindow;
  readonly amount: bigint;
  /** Empty for all models. */
  readonly model: string;
  /** Whether each end user has the amount of its own. */
  readonly perUser: boolean;
  readonly temporary: { readonly amount: bigint; readonly until: Date } | undefined;
};
