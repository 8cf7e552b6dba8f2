/** What a limit counts: cost in micros, tokens, generations, or running generations. */
export type LimitMetric = "cost" | "tokens" | "generations" | "concurrent";

/** What a limit can be set on. An alert counts cost as well, and never refuses a call. */
export type SetMetric = LimitMetric | "cost_alert";

/** In UTC; weeks start on Monday. Empty for "concurrent". */
export type LimitWindow = "" | "minute" | "hour" | "day" | "week" | "month" | "total";

/** A limit as its owner sets it. */
export type LimitToSet = {
  readonly metric: SetMetric;
  readonly window: LimitWindow;
  readonly amount: bigint;
  /** Empty for all models. */
  readonly model: string;
  /** Whether each end user has the amount of its own. */
  readonly perUser: boolean;
  readonly temporary: { readonly amount: bigint; readonly until: Date } | undefined;
};

/** The windows of alerts: shorter ones write no events. */
export const ALERT_WINDOWS: readonly string[] = ["day", "week", "month", "total"] satisfies LimitWindow[];

/** Whether amounts of the metric are micros. */
export function countsCost(metric: string): boolean {
  return metric === "cost" || metric === "cost_alert";
}
