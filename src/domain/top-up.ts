import { type Currency, currency, type Micros } from "./money.ts";

/** The code of the currency as payment providers write it. */
export function paymentCurrency(): string {
  return currency().code.toLowerCase();
}

/** Payments are whole multiples of it: a hundredth, or a whole unit of a currency without decimals. */
export function paymentUnit({ decimals }: Currency): Micros {
  return decimals === 0 ? 1_000_000n : 10_000n;
}
