import { formatMicros, parseAmount } from "../../src/domain/money.ts";

/** The exact amount, with separators between thousands: "$12,345.678901". */
export function moneyText(micros: bigint): string {
  return formatMicros(micros).replace(/\d+/, grouped);
}

/** The amount that a person typed; undefined if it is none. */
export function amountOf(text: string): bigint | undefined {
  return parseAmount(text.trim().replaceAll(/[$,]/g, ""));
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

/** An exact amount. The decimals below a hundredth are less prominent. */
export function Money({ micros, isAligned = false }: MoneyProps) {
  const text = moneyText(micros);
  const point = text.indexOf(".");
  const missing = MAX_DECIMALS - (text.length - point - 1);
  return (
    <span class="money" style={isAligned ? { "--missing-digits": String(missing) } : undefined}>
      {text.slice(0, point + 3)}
      {text.length > point + 3 && <span class="money-fine">{text.slice(point + 3)}</span>}
    </span>
  );
}
