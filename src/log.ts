import { type DestinationStream, type Logger, pino } from "pino";
import type { LogLevel } from "./config.ts";
import { redactKeys } from "./domain/api-key.ts";

export type Log = Logger;

/** What waits for a stderr that nobody reads; lines beyond it are lost, calls go on. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

/** JSON lines on stderr. Whatever looks like a key is cut out of the finished line, wherever it came from. */
export function createLog(
  level: LogLevel,
  stream: DestinationStream = pino.destination({ dest: 2, sync: false, maxLength: MAX_WAITING_BYTES }),
): Log {
  const redacting: DestinationStream = { write: (line) => stream.write(redactKeys(line)) };
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
