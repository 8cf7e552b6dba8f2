import { type DestinationStream, type Logger, pino } from "pino";
import type { LogLevel } from "./config.ts";
import { redactKeys } from "./domain/api-key.ts";

export type Log = Logger;

/** What waits for a stderr that nobody reads; lines beyond it are lost, calls go on. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

const FLUSH_MS = 200;

/** Says when it has written something. */
type Destination = DestinationStream & {
  once?: (event: "write", listener: () => void) => unknown;
  flush?: (done: () => void) => void;
};

/** JSON lines on stderr. Whatever looks like a key is cut out of the finished line, wherever it came from. */
export function createLog(
  level: LogLevel,
  stream: Destination = pino.destination({ dest: 2, sync: false, maxLength: MAX_WAITING_BYTES }),
): Log {
  const redacting: Destination = {
    write: (line) => stream.write(redactKeys(line)),
    flush: (done) => (stream.once ? stream.once("write", done) : done()),
  };
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

/** Resolves when what was logged last is written, or soon after where nobody reads it. */
export function flushed(log: Log): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, FLUSH_MS).unref();
    log.flush(() => resolve());
  });
}
