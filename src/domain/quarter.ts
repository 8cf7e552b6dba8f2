/** Quarters of an hour since 1970: days of all time zones consist of whole ones. */
export type Quarter = number;

/** The end is exclusive. */
export type QuarterRange = { readonly from: Quarter; readonly to: Quarter };

export const QUARTER_MS = 15 * 60_000;
