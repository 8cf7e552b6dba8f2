import type { Command } from "commander";

export type JsonOption = { readonly json?: true };

/** Fills a command with its subcommands, options and actions. */
export type Define = (command: Command) => void;

export function withExamples(command: Command, examples: readonly string[]): Command {
  const title = examples.length === 1 ? "Example:" : "Examples:";
  return command.addHelpText("after", `\n${title}\n${examples.map((line) => `  ${line}\n`).join("")}`);
}

/** A command that makes a call. `usage` is its name with its arguments. */
export function callCommand(
  group: Command,
  usage: string,
  description: string,
  examples: readonly string[],
): Command {
  const command = group.command(usage).description(description);
  return withExamples(command.option("--json", "print the response message as JSON"), examples);
}
