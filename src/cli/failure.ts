import { EXIT_FAILED, EXIT_USAGE } from "./exit.ts";

/** What ends a command: one clear line for a person, and the exit code. */
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
