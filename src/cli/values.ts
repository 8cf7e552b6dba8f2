import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { PutPlanRequestSchema, RotateKeyRequestSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Micros, parseAmount } from "../domain/money.ts";
import { maximumOf } from "../rules/body-limits.ts";
import { usageFailure } from "./failure.ts";

/** Reads the text of a parameter called `name`; `before` is the value that it already has. An invalid text is a usage error. */
export type Parser<Value> = (text: string, name: string, before: Value | undefined) => Value;

function refuse(name: string, rule: string, text: string): never {
  throw usageFailure(`${name}: ${rule}, not ${JSON.stringify(text)} (--help shows the usage and examples)`);
}

const DAY_MS = 86_400_000;
/** The largest amount that the server accepts for one entry. */
const MAX_MOVEMENT_MICROS = 1_000_000_000_000_000n;
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** A limit or a count. */
function upTo(max: number): Parser<number> {
  return (text, name) => {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : 0;
    if (number >= 1 && number <= max) return number;
    return refuse(name, `must be a whole number from 1 to ${max}`, text);
  };
}

export const positive: Parser<number> = upTo(2_147_483_647);
export const rpm: Parser<number> = upTo(maximumOf(PutPlanRequestSchema.field.rpm));
export const overlapSeconds: Parser<number> = upTo(maximumOf(RotateKeyRequestSchema.field.overlapSeconds));

/** An amount with a sign. */
const amount: Parser<Micros> = (text, name) => {
  const micros = parseAmount(text);
  if (micros === undefined) return refuse(name, "must be an amount such as 25.00, with a dot and at most 6 decimals", text);
  const isInRange = micros <= MAX_MOVEMENT_MICROS && micros >= -MAX_MOVEMENT_MICROS;
  return isInRange ? micros : refuse(name, "must be between -1000000000.00 and 1000000000.00", text);
};

/** An amount of which some values are refused by a rule. */
const amountThat = (isValid: (micros: Micros) => boolean, rule: string): Parser<Micros> => {
  return (text, name, before) => {
    const micros = amount(text, name, before);
    return isValid(micros) ? micros : refuse(name, rule, text);
  };
};

export const positiveAmount: Parser<Micros> = amountThat((micros) => micros > 0n, "must be greater than 0");
export const notNegative: Parser<Micros> = amountThat((micros) => micros >= 0n, "must not be negative");
export const adjustAmount: Parser<Micros> = amountThat((micros) => micros !== 0n, "must not be 0");
export const creditAmount: Parser<Micros> = amountThat(
  (micros) => micros > 0n,
  "must be greater than 0 (to subtract, use 'vx accounts adjust')",
);

/** Accepts RFC 3339, or a date, which means 00:00 UTC. */
export const time: Parser<Timestamp> = (text, name) => {
  const date = new Date(TIME.test(text) ? text : Number.NaN);
  if (!Number.isNaN(date.getTime()) && dayExists(text.slice(0, 10))) return timestampFromDate(date);
  return refuse(name, "must be a time such as 2030-01-31T00:00:00Z, or a day such as 2030-01-31", text);
};

/** The end of a day in UTC. */
export const lastDay: Parser<Timestamp> = (text, name) => {
  const start = new Date(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : Number.NaN);
  if (!Number.isNaN(start.getTime()) && dayExists(text)) return timestampFromDate(new Date(start.getTime() + DAY_MS));
  return refuse(name, "must be a day such as 2030-01-31", text);
};

/** Date parses February 30 as a day in March. */
function dayExists(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}

/** A discount in hundredths of a percent. */
export const discount: Parser<number> = (text, name) => {
  const [, whole = "", fraction = ""] = /^(\d{1,3})(?:\.(\d{1,2}))?%?$/.exec(text) ?? [];
  const bps = whole === "" ? Number.NaN : Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  if (bps <= 10_000) return bps;
  return refuse(name, "must be a percentage such as 15% or 12.5%, at most 100%", text);
};

/** One of few words, which the error names with `rule`. */
export function oneOf<const Word extends string>(words: readonly Word[], rule: string): Parser<Word> {
  return (text, name) => {
    const word = words.find((known) => known === text);
    if (word === undefined) throw usageFailure(`${name}: must be ${rule}`);
    return word;
  };
}

/** A value, or a word that clears it. */
function orWord<Value>(word: string, parse: Parser<Value>): Parser<Value | undefined> {
  return (text, name, before) => (text === word ? undefined : parse(text, name, before));
}

export const rpmOrDefault: Parser<number | undefined> = orWord("default", rpm);
export const timeOrNever: Parser<Timestamp | undefined> = orWord("never", time);

/** The values of an option that may be given several times. */
export const collect: Parser<string[]> = (text, _, before = []) => [...before, text];

/** The word "all" stands for no restriction, whatever else is given. */
export const collectOrAll: Parser<string[]> = (text, name, before) =>
  text === "all" || before?.length === 0 ? [] : collect(text, name, before);
