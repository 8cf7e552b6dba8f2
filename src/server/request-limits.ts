import type { BodyBudget } from "../codec/body-budget.ts";

/** The limits within which the request of one call is read. */
export type RequestLimits = {
  readonly maxBytes: number;
  readonly budget: BodyBudget;
  /** The account whose share of the budget the body uses; no account can use all of it. */
  readonly sender: string | undefined;
};
