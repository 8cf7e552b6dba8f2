import { formatMicros } from "../../src/domain/money.ts";

/** The exact amount, with separators between thousands: "$12,345.678901". */
export function moneyText(micros: bigint): string {
  return formatMicros(micros).replace(/\d+/, grouped);
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
  /** With all six decimals, so that the amounts of a column have their points below each other. */
  readonly isAligned?: boolean;
};

/** An exact amount. The decimals below a hundredth are less prominent. */
export function Money({ micros, isAligned = false }: MoneyProps) {
  const text = moneyText(micros);
  const point = text.indexOf(".");
  const full = isAligned ? text.padEnd(point + 7, "0") : text;
  return (
    <span class="money">
      {full.slice(0, point + 3)}
      {full.length > point + 3 && <span class="money-fine">{full.slice(point + 3)}</span>}
    </span>
  );
}
