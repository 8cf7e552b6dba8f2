import { type Command, Option } from "commander";

export type JsonOption = { readonly json?: true };

/** Adds subcommands, options and actions to a command. */
export type Define = (command: Command) => void;

export function withExamples(command: Command, examples: readonly string[]): Command {
  const title = examples.length === 1 ? "Example:" : "Examples:";
  return command.addHelpText("after", `\n${title}\n${examples.map((line) => `  ${line}\n`).join("")}`);
}

/**
 * A required option. Commander checks its own required options before unknown ones, so it would report a
 * misspelled option as a missing one.
 */
export function requiredOption(
  command: Command,
  flags: string,
  description: string,
  parse: (text: string) => unknown = String,
): Command {
  const option = new Option(flags, `${description} (required)`).argParser(parse);
  return command.addOption(option).hook("preAction", (_, running) => {
    if (running.getOptionValue(option.attributeName()) !== undefined) return;
    running.error(`error: the option '${flags}' is missing`);
  });
}

export type ReasonOption = { readonly reason?: string };

const REASON = "why the change is made, for the operator log and, if the balance changes, the ledger of the account";

/** The reason of a change. The server requires it for changes that an account may question. */
export function reasonOption(command: Command, { isRequired = false } = {}): Command {
  const flags = "--reason <text>";
  return isRequired ? requiredOption(command, flags, REASON) : command.option(flags, REASON);
}

/** A command that makes a call. `usage` is its name with its arguments. */
export function callCommand(group: Command, usage: string, description: string, examples: readonly string[]): Command {
  const command = group.command(usage).description(description);
  return withExamples(command.option("--json", "print the response message as JSON"), examples);
}
