import type { BodyShare } from "../codec/body-budget.ts";

/** The limits within which the request of one call is read. */
export type RequestLimits = {
  readonly maxBytes: number;
  /** The part of the account in the budget; it is held until the call has ended. */
  readonly share: BodyShare;
};
