import { type Micros, parseAmount } from "../domain/money.ts";
import { usageFailure } from "./failure.ts";

/** Parses an argument or option called `name`. An invalid value is a usage error. */
type Parser<Value> = (text: string) => Value;

function refuse(name: string, rule: string, text: string): never {
  throw usageFailure(`${name}: ${rule}, not ${JSON.stringify(text)} (--help shows the usage and examples)`);
}

const DAY_MS = 86_400_000;
const AMOUNT = "<amount>";
/** The largest amount that the server accepts for one entry. */
const MAX_MOVEMENT_MICROS = 1_000_000_000_000_000n;
export const MAX_RPM = 1_000_000;
const MAX_INT32 = 2_147_483_647;
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** A limit or a count. */
export function positiveNumber(name: string, max: number = MAX_INT32): Parser<number> {
  return (text) => {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : 0;
    if (number >= 1 && number <= max) return number;
    return refuse(name, `must be a whole number from 1 to ${max}`, text);
  };
}

/** An amount to add. */
export function creditAmount(text: string): Micros {
  const micros = amount(text);
  if (micros > 0n) return micros;
  return refuse(AMOUNT, "must be greater than 0 (to subtract, use 'vx accounts adjust')", text);
}

/** An amount to add or, if negative, to subtract. */
export function adjustAmount(text: string): Micros {
  const micros = amount(text);
  return micros === 0n ? refuse(AMOUNT, "must not be 0", text) : micros;
}

/** A discount in hundredths of a percent. */
export function discount(text: string): number {
  const [, whole = "", fraction = ""] = /^(\d{1,3})(?:\.(\d{1,2}))?%?$/.exec(text) ?? [];
  const bps = whole === "" ? Number.NaN : Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  if (bps <= 10_000) return bps;
  return refuse("--discount", "must be a percentage such as 15% or 12.5%, at most 100%", text);
}

/** A threshold of a balance. */
export function lowBalance(text: string): Micros {
  const micros = amount(text, LOW_BALANCE);
  return micros < 0n ? refuse(LOW_BALANCE, "must not be negative", text) : micros;
}

/** An amount greater than 0. */
export function positiveAmount(name: string): Parser<Micros> {
  return (text) => {
    const micros = amount(text, name);
    return micros > 0n ? micros : refuse(name, "must be greater than 0", text);
  };
}

const LOW_BALANCE = "--low-balance";

function amount(text: string, name = AMOUNT): Micros {
  const micros = parseAmount(text);
  if (micros === undefined) {
    return refuse(name, "must be an amount such as 25.00, with a dot and at most 6 decimals", text);
  }
  const isInRange = micros <= MAX_MOVEMENT_MICROS && micros >= -MAX_MOVEMENT_MICROS;
  return isInRange ? micros : refuse(name, "must be between -1000000000.00 and 1000000000.00", text);
}

/** Accepts RFC 3339, or a date, which means 00:00 UTC. */
export function time(name: string): Parser<Date> {
  return (text) => {
    const date = new Date(TIME.test(text) ? text : Number.NaN);
    if (!Number.isNaN(date.getTime()) && dayExists(text.slice(0, 10))) return date;
    return refuse(name, "must be a time such as 2030-01-31T00:00:00Z, or a day such as 2030-01-31", text);
  };
}

/** The end of a day in UTC. */
export function lastDay(name: string): Parser<Date> {
  return (text) => {
    const start = new Date(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : Number.NaN);
    if (!Number.isNaN(start.getTime()) && dayExists(text)) return new Date(start.getTime() + DAY_MS);
    return refuse(name, "must be a day such as 2030-01-31", text);
  };
}

/** Date parses February 30 as a day in March. */
function dayExists(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}

/** A value, or a word that stands for none. */
export function orWord<Value, Word extends string>(word: Word, parse: Parser<Value>): Parser<Value | Word> {
  return (text) => (text === word ? word : parse(text));
}

/** An option that may be given several times. */
export function collect(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Customers choose the names of their accounts, so that a change by name could be made to another account. */
export const ACCOUNT = "the id or external id of the account; to read, also a name that no other account has";
export const ACCOUNT_OPTION = `${ACCOUNT} (required, unless it is the argument)`;

/** The account, given as an argument or as an option. */
export function accountOf(argument: string | undefined, option: string | undefined): string {
  const account = argument ?? option;
  if (account === undefined) throw usageFailure("the account is missing; add --account ACCOUNT");
  if (option !== undefined && option !== account) {
    throw usageFailure(
      `--account is ${JSON.stringify(option)}, but the argument is ${JSON.stringify(argument)}; give one account`,
    );
  }
  return account;
}
