/** Amounts are whole millionths of the currency unit, as bigint, everywhere. */
export type Micros = bigint;

const MICROS_PER_UNIT = 1_000_000n;

/** The exact amount with 2 to 6 decimals: 9999986n is "$9.999986", -500000n is "-$0.50". */
export function formatMicros(micros: Micros): string {
  const positive = micros < 0n ? -micros : micros;
  const decimals = (positive % MICROS_PER_UNIT)
    .toString()
    .padStart(6, "0")
    .replace(/0{1,4}$/, "");
  return `${micros < 0n ? "-" : ""}$${positive / MICROS_PER_UNIT}.${decimals}`;
}

/** Parses "25", "25.00" or "-0.000001"; undefined if the text is not an exact amount. */
export function parseAmount(text: string): Micros | undefined {
  const match = /^(-?)(\d{1,13})(?:\.(\d{1,6}))?$/.exec(text);
  if (!match) return undefined;
  const micros = BigInt(match[2] ?? "0") * MICROS_PER_UNIT + BigInt((match[3] ?? "").padEnd(6, "0"));
  return match[1] === "-" ? -micros : micros;
}
