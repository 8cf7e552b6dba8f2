import type { Writable } from "node:stream";
import { CommandFailure } from "./failure.ts";
import { type Shell, shell } from "./shell.ts";

/**
 * Writes the text and waits until the stream accepts it, so that a slow pipe applies backpressure instead of
 * filling the memory. Returns false if the reader closed the pipe, as with `| head`.
 */
export async function printOut(text: string): Promise<boolean> {
  const error = await write(shell.stdout, text);
  if (error === undefined) return true;
  if (error.code === "EPIPE") return false;
  throw new CommandFailure(`the output cannot be written: ${error.message}`);
}

/** Prints the result of a command as JSON or as text. */
export async function printResult(isJson: boolean, result: object, text: string): Promise<void> {
  await printOut(isJson ? `${JSON.stringify(result)}\n` : text);
}

/** Writes one line. A write error is ignored: the exit code reports the failure. */
export async function printError(line: string): Promise<void> {
  await write(shell.stderr, `${line}\n`);
}

/** Ignores errors of a closed pipe, which would otherwise end the process with a stack trace. */
export function surviveClosedOutput(): void {
  for (const stream of [shell.stdout, shell.stderr]) stream.on("error", () => undefined);
}

function write(stream: Writable, text: string): Promise<NodeJS.ErrnoException | undefined> {
  if (text === "") return Promise.resolve(undefined);
  return new Promise((resolve) => stream.write(text, (error) => resolve(error ?? undefined)));
}

/** Characters that control a terminal or reverse the direction of text. */
export const UNSAFE: RegExp = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Makes text from outside safe to print on a terminal. */
export function visible(text: string): string {
  return text.replace(UNSAFE, "\u{fffd}");
}

/** A progress bar on a terminal. Elsewhere it prints nothing. */
export type Progress = { show(share: number, text: string): void; clear(): void };

const WIDTH = 30;
const ERASE_LINE = "\r\x1b[2K";

export function createProgress(terminal: Pick<Shell["stderr"], "isTTY" | "write"> = shell.stderr): Progress {
  let shown = "";
  return {
    show: (share, text) => {
      const done = Math.round(Math.min(Math.max(share, 0), 1) * WIDTH);
      const line = `[${"#".repeat(done)}${" ".repeat(WIDTH - done)}] ${Math.floor(share * 100)} %  ${text}`;
      if (!terminal.isTTY || line === shown) return;
      shown = line;
      terminal.write(ERASE_LINE + line);
    },
    clear: () => {
      if (shown !== "") terminal.write(ERASE_LINE);
      shown = "";
    },
  };
}
