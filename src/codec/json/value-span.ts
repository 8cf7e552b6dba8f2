/** Objects and lists up to this size are read at once: under a millisecond of work. */
export const MAX_SHORT_UNITS = 65_536;
const MAX_SHORT_VALUES = 4_096;

/** The text of an object of this size is kept: writing it again takes as long as reading it. */
const MIN_PART_UNITS = 4_096;

/** Longer than any number or indentation that is usual; the scanner has limits for both. */
const MAX_GAP_UNITS = 256;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** A large object or list inside another one. */
export type Part = { readonly start: number; readonly units: number };

type Span = {
  readonly end: number;
  readonly members: number;
  /** By the number of objects and lists that start before it. */
  readonly parts: ReadonlyMap<number, Part>;
};

/**
 * Finds the end of the object or list that starts there, without a check of its syntax; undefined if it is too long,
 * too deep, or not like the text of usual values.
 */
export function spanAt(text: string, start: number, maxDepth: number): Span | undefined {
  const stop = Math.min(text.length, start + MAX_SHORT_UNITS);
  const open: { readonly number: number; readonly start: number }[] = [];
  const parts = new Map<number, Part>();
  let containers = 0;
  let members = 0;
  let commas = 0;
  let gapFrom = start;
  for (let at = start; at < stop; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at, stop);
        break;
      case COLON:
        members++;
        break;
      case COMMA:
        commas++;
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        open.push({ number: containers++, start: at - start });
        if (open.length > maxDepth) return undefined;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT: {
        const closed = open.pop();
        if (closed && at - start - closed.start >= MIN_PART_UNITS) {
          parts.set(closed.number, { start: closed.start, units: at + 1 - start - closed.start });
        }
        if (open.length === 0) return { end: at + 1, members, parts };
        break;
      }
      default:
        if (at - gapFrom > MAX_GAP_UNITS) return undefined;
        continue;
    }
    if (containers + commas > MAX_SHORT_VALUES) return undefined;
    gapFrom = at;
  }
  return undefined;
}

/** The position of the closing quote; `stop` if the text has none. */
function endOfString(text: string, start: number, stop: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && end < stop && text.charCodeAt(end - 1) === BACKSLASH && isEscaped(text, end)) {
    end = text.indexOf('"', end + 1);
  }
  return end < 0 ? stop : end;
}

/** Whether an odd number of backslashes is before the quote. */
function isEscaped(text: string, quote: number): boolean {
  let at = quote - 1;
  while (text.charCodeAt(at) === BACKSLASH) at--;
  return (quote - at) % 2 === 0;
}
