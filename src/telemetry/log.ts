import { type DestinationStream, type Logger, pino } from "pino";
import { redactKeys } from "../domain/credentials.ts";

export type Log = Logger;

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

const FLUSH_MS = 200;

type Destination = DestinationStream & { flush?: (done: () => void) => void };

/**
 * Writes JSON lines to stderr. Anything that looks like a key is removed from the finished line, regardless of
 * its source.
 */
export function createLog(level: (typeof LOG_LEVELS)[number], output: Destination = new LogOutput(process.stderr)): Log {
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

/** Limit of the buffer while the reader of the stream stalls. */
const MAX_WAITING_CHARACTERS = 8 * 1024 * 1024;

/**
 * Writes log lines to a stream of the process, one write per turn of the event loop. A pipe whose reader
 * stalls does not block the process, because Node opens it non-blocking. Lines beyond the limit, and lines
 * that cannot be written (a full disk, a closed pipe), are dropped. The stream stays open, so logging resumes
 * when writing is possible again.
 */
class LogOutput {
  readonly #stream: NodeJS.WriteStream;
  #waiting = "";
  #isWriting = false;
  #flushed: (() => void)[] = [];

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    // The callback of the write also gets the error; without a listener the event would end the process.
    stream.on("error", () => undefined);
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > MAX_WAITING_CHARACTERS) return;
    this.#waiting += line;
    if (this.#isWriting) return;
    this.#isWriting = true;
    setImmediate(() => this.#send());
  }

  /** Calls back once no line is waiting. */
  flush(done: () => void): void {
    if (this.#isWriting) this.#flushed.push(done);
    else done();
  }

  #send(): void {
    const text = this.#waiting;
    this.#waiting = "";
    this.#stream.write(text, () => {
      if (this.#waiting !== "") {
        setImmediate(() => this.#send());
        return;
      }
      this.#isWriting = false;
      for (const done of this.#flushed.splice(0)) done();
    });
  }
}
