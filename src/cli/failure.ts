import { EXIT_FAILED, EXIT_USAGE } from "./exit.ts";

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
