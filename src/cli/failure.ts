/** Exit codes of the command line, besides 0. */
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;
/** The server violated an invariant of money. A restart may violate it again: see docs/operations.md. */
export const EXIT_INVARIANT = 70;

/** Ends a command with a one-line message and an exit code. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT_FAILED) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Ends the command with the message of any error of the work. */
export async function orFailure<Result>(work: Promise<Result>): Promise<Result> {
  return await work.catch((error: Error) => {
    throw new CommandFailure(error.message);
  });
}

export function usageFailure(message: string): CommandFailure {
  return new CommandFailure(message, EXIT_USAGE);
}
