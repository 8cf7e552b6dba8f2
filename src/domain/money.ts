/** Amounts are whole millionths of the currency unit, as bigint, everywhere. */
export type Micros = bigint;

const MICROS_PER_UNIT = 1_000_000n;
const MAX_DECIMALS = 6;

export type Currency = {
  readonly code: string;
  /** Before an amount. */
  readonly sign: string;
  /** How many decimals an amount has at least. */
  readonly decimals: 0 | 2 | 3;
  /** The zeros at the end that an amount is written without. */
  readonly surplus: RegExp;
};

const SIGNS: Readonly<Record<string, string>> = { USD: "$", EUR: "€", GBP: "£", JPY: "¥" };
const WITHOUT_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW MGA PYG RWF UGX VND VUV XAF XOF XPF";
const WITH_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND";

/** All amounts of a process are in one currency, as are those of an installation. */
let current = currencyOf("USD");

export function currencyOf(code: string): Currency {
  const isOneOf = (codes: string) => codes.split(" ").includes(code);
  const decimals = isOneOf(WITHOUT_DECIMALS) ? 0 : isOneOf(WITH_THREE_DECIMALS) ? 3 : 2;
  const surplus = new RegExp(`0{1,${MAX_DECIMALS - decimals}}$`);
  return { code, sign: SIGNS[code] ?? `${code} `, decimals, surplus };
}

/** Sets the currency of all amounts. Call this at start. */
export function setCurrency(code: string): void {
  current = currencyOf(code);
}

export function currency(): Currency {
  return current;
}

/** The exact amount with the decimals of the currency and up to 6: 9999986n is "$9.999986", -500000n is "-$0.50". */
export function formatMicros(micros: Micros): string {
  const positive = micros < 0n ? -micros : micros;
  const decimals = (positive % MICROS_PER_UNIT).toString().padStart(MAX_DECIMALS, "0").replace(current.surplus, "");
  const fraction = decimals === "" ? "" : `.${decimals}`;
  return `${micros < 0n ? "-" : ""}${current.sign}${positive / MICROS_PER_UNIT}${fraction}`;
}

/** Parses "25", "25.00" or "-0.000001"; undefined if the text is not an exact amount. */
export function parseAmount(text: string): Micros | undefined {
  const match = /^(-?)(\d{1,13})(?:\.(\d{1,6}))?$/.exec(text);
  if (!match) return undefined;
  const micros = BigInt(match[2] ?? "0") * MICROS_PER_UNIT + BigInt((match[3] ?? "").padEnd(6, "0"));
  return match[1] === "-" ? -micros : micros;
}
