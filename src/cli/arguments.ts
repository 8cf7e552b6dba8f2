import { InvalidArgumentError } from "commander";
import { type Micros, parseAmount } from "../domain/money.ts";
import { usageFailure } from "./failure.ts";

/** Parsers of arguments and options: what they refuse is wrong usage. */

const MAX_INT32 = 2_147_483_647;
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** A limit or a count: the server may still say that it is too large. */
export function positiveNumber(text: string): number {
  const number = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > MAX_INT32)
    throw new InvalidArgumentError("It must be a whole number of at least 1.");
  return number;
}

/** An amount to add. */
export function creditAmount(text: string): Micros {
  const micros = amount(text);
  if (micros <= 0n)
    throw new InvalidArgumentError("It must be more than 0; 'vx accounts adjust' takes money away.");
  return micros;
}

/** An amount to add or, with a minus, to take away. */
export function adjustAmount(text: string): Micros {
  const micros = amount(text);
  if (micros === 0n) throw new InvalidArgumentError("It must not be 0.");
  return micros;
}

function amount(text: string): Micros {
  const micros = parseAmount(text);
  if (micros === undefined)
    throw new InvalidArgumentError("It must be an amount such as 25.00, with at most 6 decimals.");
  if (BigInt.asIntN(64, micros) !== micros) throw new InvalidArgumentError("It is too large.");
  return micros;
}

/** RFC 3339, or a day, which stands for its beginning in UTC. */
export function time(text: string): Date {
  const date = new Date(TIME.test(text) ? text : Number.NaN);
  if (Number.isNaN(date.getTime()) || !dayExists(text.slice(0, 10))) {
    throw new InvalidArgumentError(
      "It must be a time such as 2030-01-31T00:00:00Z, or a day such as 2030-01-31.",
    );
  }
  return date;
}

/** Date makes March of the 30th of February. */
function dayExists(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}

/** An option that may be given several times. */
export function collect(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** The account, which may be named in either place. */
export function accountOf(argument: string | undefined, option: string | undefined): string {
  const account = argument ?? option;
  if (account === undefined) throw usageFailure("the account is missing: name it with --account ID");
  if (option !== undefined && option !== account) throw usageFailure("two different accounts are named");
  return account;
}
