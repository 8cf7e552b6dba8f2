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

export function usageFailure(message: string): CommandFailure {
  return new CommandFailure(message, EXIT_USAGE);
}
