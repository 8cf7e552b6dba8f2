import { CommandFailure } from "./failure.ts";

/**
 * Writes and waits until it is taken, so that a slow pipe holds the command back instead of filling its memory.
 * False if nobody reads any more, as after `| head`.
 */
export async function printOut(text: string): Promise<boolean> {
  const error = await write(process.stdout, text);
  if (error === undefined) return true;
  if (error.code === "EPIPE") return false;
  throw new CommandFailure(`the output cannot be written: ${error.message}`);
}

/** Writes one line; when even that is not possible, the exit code has to say it. */
export async function printError(line: string): Promise<void> {
  await write(process.stderr, `${line}\n`);
}

/** Output that nobody reads any more must not end the process with a stack trace. */
export function surviveClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

function write(stream: NodeJS.WriteStream, text: string): Promise<NodeJS.ErrnoException | undefined> {
  if (text === "") return Promise.resolve(undefined);
  return new Promise((resolve) => stream.write(text, (error) => resolve(error ?? undefined)));
}
