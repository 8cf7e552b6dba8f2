import { CommandFailure } from "./failure.ts";

/**
 * Writes the text and waits until the stream accepts it, so that a slow pipe applies backpressure instead of
 * filling the memory. Returns false if the reader closed the pipe, as with `| head`.
 */
export async function printOut(text: string): Promise<boolean> {
  const error = await write(process.stdout, text);
  if (error === undefined) return true;
  if (error.code === "EPIPE") return false;
  throw new CommandFailure(`the output cannot be written: ${error.message}`);
}

/** Writes one line. A write error is ignored: the exit code reports the failure. */
export async function printError(line: string): Promise<void> {
  await write(process.stderr, `${line}\n`);
}

/** Ignores errors of a closed pipe, which would otherwise end the process with a stack trace. */
export function surviveClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

function write(stream: NodeJS.WriteStream, text: string): Promise<NodeJS.ErrnoException | undefined> {
  if (text === "") return Promise.resolve(undefined);
  return new Promise((resolve) => stream.write(text, (error) => resolve(error ?? undefined)));
}
