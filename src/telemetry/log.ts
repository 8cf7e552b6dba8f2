import { type DestinationStream, type Logger, pino } from "pino";
import { redactKeys } from "../domain/api-key.ts";
import { LogOutput } from "./log-output.ts";

export type Log = Logger;

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

const FLUSH_MS = 200;

type Destination = DestinationStream & { flush?: (done: () => void) => void };

/** JSON lines on stderr. Whatever looks like a key is cut out of the finished line, wherever it came from. */
export function createLog(level: LogLevel, output: Destination = new LogOutput(process.stderr)): Log {
  const redacting: Destination = {
    write: (line) => output.write(redactKeys(line)),
    flush: (done) => (output.flush ? output.flush(done) : done()),
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
    const timer = setTimeout(resolve, FLUSH_MS);
    log.flush(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
