import { DomainError } from "./errors.ts";

/** The wall clock of a time zone: milliseconds since 1970 as if it were UTC. */
export type TimeZone = { readonly localMs: (utcMs: number) => number };

/** Names of the IANA database. Without this, Intl would also accept offsets such as "+05:30". */
const NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;

export function timeZoneOf(name: string): TimeZone {
  if (name === "UTC") return { localMs: (utcMs) => utcMs };
  const format = NAME.test(name) ? formatOf(name) : undefined;
  if (!format) {
    throw DomainError.ofField("tz", 'must be a time zone of the IANA database, such as "Europe/Berlin"');
  }
  return {
    localMs: (utcMs) => {
      const [, month, day, year, hour, minute] = LOCAL_TIME.exec(format.format(utcMs)) ?? [];
      return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute));
    },
  };
}

const LOCAL_TIME = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+)$/;

function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
    });
  } catch {
    return undefined;
  }
}
