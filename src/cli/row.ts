import { Argument, type Command, Option } from "commander";
import { eachWith, type Input, type Parameters, type Values } from "./parameters.ts";

/** A row of the table of commands: a command, or a noun with commands. */
export type Row = {
  /** What it does. program.ts describes the nouns, which are loaded when they are used. */
  readonly about?: string;
  /** What follows the words of the command, or a line that contains them. */
  readonly examples?: readonly string[];
  readonly parameters?: Parameters;
  /** Runs the command. `given` has the names of the parameters in the command line. */
  readonly run?: (values: Record<string, unknown>, given: readonly string[], running: Command) => Promise<void>;
  readonly commands?: Readonly<Record<string, Row>>;
};

export function noun(examples: readonly string[], commands: Readonly<Record<string, Row>>): Row {
  return { examples, commands };
}

/** A command with a behaviour of its own. */
export function command<All extends Parameters>(row: {
  readonly about?: string;
  readonly parameters: All;
  readonly examples: readonly string[];
  readonly run: (values: Values<All>) => Promise<void>;
}): Row {
  return { ...row, run: (values) => row.run(values as Values<All>) };
}

/** Adds to a command of Commander what its row has. */
export function define(target: Command, row: Row): void {
  const { about, examples = [], parameters = {}, run, commands = {} } = row;
  if (about !== undefined) target.description(about);
  if (examples.length > 0) target.addHelpText("after", examplesText(target, examples));
  for (const [name, one] of Object.entries(commands)) define(target.command(name), one);
  if (!run) return;
  const inputs = Object.values(parameters).flatMap((parameter) =>
    parameter.inputs.map((input) => ({ ...input, box: add(target, input) })),
  );
  target.action(async () => {
    const boxes = inputs.map(({ box }) => box());
    // Commander checks its own required options before unknown ones, so it would report a misspelled option as a missing one.
    const missing = inputs.find(({ isRequired }, i) => isRequired && boxes[i] === undefined);
    if (missing) target.error(`error: the option '${missing.flags}' is missing`);
    const values: Record<string, unknown> = {};
    const given: string[] = [];
    for (const [name, { read }, own] of eachWith(parameters, boxes)) {
      values[name] = await read(own.map((box) => box?.value));
      if (own.some(Boolean)) given.push(name);
    }
    await run(values, given, target);
  });
}

function examplesText(target: Command, examples: readonly string[]): string {
  let words = target.name();
  for (let parent = target.parent; parent; parent = parent.parent) words = `${parent.name()} ${words}`;
  const lines = examples.map((line) => `  ${/(^|[ (])vx /.test(line) ? line : `${words} ${line}`.trim()}\n`);
  return `\n${lines.length === 1 ? "Example" : "Examples"}:\n${lines.join("")}`;
}

/** A value that was given. It is undefined if a word clears a field. */
type Box = { readonly value: unknown };

/** Adds an argument or an option. Returns what has its value once the command line is parsed. */
function add(target: Command, { flags, text, values, conflicts = [] }: Input): () => Box | undefined {
  const isOption = flags.startsWith("--");
  const input = isOption ? new Option(flags, text).conflicts(conflicts) : new Argument(flags, text);
  if (typeof values === "function") {
    const name = flags.split(" ")[0] as string;
    input.argParser((given: string, before?: Box) => ({ value: values(given, name, before?.value as never) }));
  } else if (values) input.choices(values);
  if (input instanceof Option) target.addOption(input);
  else target.addArgument(input);
  const at = target.registeredArguments.length - 1;
  return () => {
    const value = input instanceof Option ? target.getOptionValue(input.attributeName()) : target.processedArgs[at];
    return typeof values === "function" || value === undefined ? value : { value };
  };
}
