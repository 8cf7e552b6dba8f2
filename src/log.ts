import { type DestinationStream, type Logger, pino } from "pino";
import type { LogLevel } from "./config.ts";

export type Log = Logger;

/** A key in full has 38 characters after its prefix, a masked one four and an ellipsis. */
const KEY = /vx_live_[0-9A-Za-z]{5,}/g;

/** JSON lines on stderr. Whatever looks like a key is cut out of the finished line, wherever it came from. */
export function createLog(
  level: LogLevel,
  stream: DestinationStream = pino.destination({ dest: 2, sync: false }),
): Log {
  const redacting: DestinationStream = { write: (line) => stream.write(redact(line)) };
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    redacting,
  );
}

export function redact(line: string): string {
  return line.includes("vx_live_") ? line.replace(KEY, "vx_live_[redacted]") : line;
}
