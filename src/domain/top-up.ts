import type { Micros } from "./money.ts";

/** The only currency. */
export const CURRENCY = "usd";
/** The smallest unit of the currency: a cent. Payments are whole multiples of it. */
export const UNIT_MICROS: Micros = 10_000n;

/** The states of a top-up. The database decides which may follow which. */
export type TopUpState = "pending" | "paid" | "failed" | "expired" | "refunded" | "disputed";
