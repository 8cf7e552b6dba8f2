import { type DestinationStream, type Logger, pino } from "pino";
import { redactKeys } from "../domain/api-key.ts";
import { LogOutput } from "./log-output.ts";

export type Log = Logger;

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

const FLUSH_MS = 200;

type Destination = DestinationStream & { flush?: (done: () => void) => void };

/**
 * Writes JSON lines to stderr. Anything that looks like a key is removed from the finished line, regardless of
 * its source.
 */
export function createLog(level: LogLevel, output: Destination = new LogOutput(process.stderr)): Log {
  const redacting: Destination = {
    write: (line) => output.write(redactKeys(line)),
    flush: (done) => (output.flush ? output.flush(done) : done()),
  };
  return pino(
    {
      level,
      base: null,
      timestamp: createIsoTime(),
      formatters: { level: (label) => ({ level: label }) },
    },
    redacting,
  );
}

/** The time of a line; those of one millisecond share its text. */
function createIsoTime(): () => string {
  let lastMs = 0;
  let text = "";
  return () => {
    const ms = Date.now();
    if (ms !== lastMs) {
      lastMs = ms;
      text = `,"time":"${new Date(ms).toISOString()}"`;
    }
    return text;
  };
}

/** Resolves when the last line is written, or after a short timeout if nothing reads the stream. */
export function flushed(log: Log): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, FLUSH_MS);
    log.flush(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
