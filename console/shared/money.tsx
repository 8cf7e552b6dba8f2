import { currency, formatMicros, parseAmount, setCurrency } from "../../src/domain/money.ts";
import { PRODUCT } from "./product.ts";

setCurrency(PRODUCT.currency);

/** For a field with an amount. */
export const AMOUNT_HINT = `In ${PRODUCT.currency}.`;

/** The exact amount, with separators between thousands: "$12,345.678901". */
export function moneyText(micros: bigint): string {
  return formatMicros(micros).replace(/\d+/, grouped);
}

/** In millionths of a micro, which are products of tokens and prices. */
const MILLIONTHS_PER_UNIT = 10n ** 12n;

/** The exact amount of a product of tokens and prices, in millionths of a micro: "$0.0000035". */
export function productText(millionths: bigint): string {
  const { sign, decimals } = currency();
  const surplus = new RegExp(`0{1,${12 - decimals}}$`);
  const rest = (millionths % MILLIONTHS_PER_UNIT).toString().padStart(12, "0").replace(surplus, "");
  return `${sign}${numberText(millionths / MILLIONTHS_PER_UNIT)}${rest === "" ? "" : `.${rest}`}`;
}

/** The amount that a person typed; undefined if it is none. */
export function amountOf(text: string): bigint | undefined {
  return parseAmount(text.trim().replace(currency().sign, "").replaceAll(",", ""));
}

/** A whole number with separators between thousands. */
export function numberText(value: bigint | number): string {
  return value.toString().replace(/\d+/, grouped);
}

function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

type MoneyProps = {
  readonly micros: bigint;
  /** Leaves room for six decimals, so that the amounts of a column have their points below each other. */
  readonly isAligned?: boolean;
};

const MAX_DECIMALS = 6;

/** An exact amount. The decimals below the smallest coin are less prominent. */
export function Money({ micros, isAligned = false }: MoneyProps) {
  const text = moneyText(micros);
  const [whole = "", decimals = ""] = text.split(".");
  const coarse = currency().decimals === 0 ? whole.length : whole.length + 1 + currency().decimals;
  return (
    <span class="money" style={isAligned ? { "--missing-digits": String(MAX_DECIMALS - decimals.length) } : undefined}>
      {text.slice(0, coarse)}
      {text.length > coarse && <span class="money-fine">{text.slice(coarse)}</span>}
    </span>
  );
}
