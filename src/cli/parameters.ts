import { randomUUID } from "node:crypto";
import { usageFailure } from "./failure.ts";
import type { Parser } from "./values.ts";

/** An argument or an option of a command line. */
export type Input = {
  /** As in help: "<account>", "[account]", "--rpm <n>" or "--apply". */
  readonly flags: string;
  readonly text: string;
  /** The values that are allowed, or what reads one. */
  readonly values?: readonly string[] | ((text: string, name: string, before: never) => unknown) | undefined;
  readonly isRequired?: boolean;
  readonly conflicts?: string[];
};

/** A value that a command takes from its command line. */
export type Parameter<Value> = {
  readonly inputs: readonly Input[];
  /** The value of what was given, in the order of the inputs. */
  readonly read: (given: readonly unknown[]) => Value | Promise<Value>;
};

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;
export type Values<All extends Parameters> = {
  readonly [Name in keyof All]: All[Name] extends Parameter<infer Value> ? Value : never;
};

type Allowed<Value> = Parser<Value> | readonly string[];

const parameter = <Value>(input: Input): Parameter<Value> => ({ inputs: [input], read: ([given]) => given as Value });

export function argument<Value = string>(flags: string, text: string, values?: Allowed<Value>): Parameter<NoInfer<Value>> {
  return parameter({ flags, text, values });
}

export function option<Value = string>(
  flags: string,
  text: string,
  values?: Allowed<Value>,
): Parameter<NoInfer<Value> | undefined> {
  return parameter({ flags, text, values });
}

export function required<Value = string>(flags: string, text: string, values?: Allowed<Value>): Parameter<NoInfer<Value>> {
  return parameter({ flags, text: `${text} (required)`, values, isRequired: true });
}

export function flag(flags: string, text: string, conflicts: string[] = []): Parameter<boolean> {
  return { inputs: [{ flags, text, conflicts }], read: ([given = false]) => given as boolean };
}

/** The same parameter, with another value. */
export function mapped<From, To>({ inputs, read }: Parameter<From>, map: (value: From) => To | Promise<To>): Parameter<To> {
  return { inputs, read: async (given) => await map(await read(given)) };
}

/** One value of several parameters. */
export function combined<Parts extends Parameters, Value>(
  parts: Parts,
  combine: (values: Values<Parts>) => Value | Promise<Value>,
): Parameter<Value> {
  const read = async (given: readonly unknown[]) => {
    const values: Record<string, unknown> = {};
    for (const [name, part, own] of eachWith(parts, given)) values[name] = await part.read(own);
    return await combine(values as Values<Parts>);
  };
  return { inputs: Object.values(parts).flatMap(({ inputs }) => inputs), read };
}

/** Each parameter with its part of what all inputs have in order. */
export function* eachWith<Given>(
  parameters: Parameters,
  given: readonly Given[],
): Generator<[name: string, parameter: Parameter<unknown>, own: readonly Given[]]> {
  let at = 0;
  for (const [name, parameter] of Object.entries(parameters)) {
    const end = at + parameter.inputs.length;
    yield [name, parameter, given.slice(at, end)];
    at = end;
  }
}

/** A field of a request that has the same value in each call. */
export function fixed<Value>(value: Value): Parameter<Value> {
  return { inputs: [], read: () => value };
}

/** A field of a request that the command leaves out, and why. */
export function unused(_reason: string): Parameter<undefined> {
  return fixed(undefined);
}

export const JSON_RESPONSE = flag("--json", "print the response message as JSON");
export const JSON_RESULT = flag("--json", "print the result as JSON");

export function idempotencyKey(text: string): Parameter<string> {
  return mapped(option("--idempotency-key <key>", text), (key) => key ?? randomUUID());
}

const REASON_TEXT = "why the change is made, for the operator log and, if the balance changes, the ledger of the account";
export const REASON = option("--reason <text>", REASON_TEXT);
/** The server requires it for changes that an account may question. */
export const REQUIRED_REASON = required("--reason <text>", REASON_TEXT);

/** Customers choose the names of their accounts, so that a change by name could be made to another account. */
export const ACCOUNT_TEXT = "the id or external id of the account; to read, also a name that no other account has";
export const ACCOUNT = argument("<account>", ACCOUNT_TEXT);

/** An account, given as an argument or as an option. */
export const ANY_ACCOUNT = combined(
  {
    argument: option("[account]", "the same as --account"),
    option: option("--account <account>", `${ACCOUNT_TEXT} (required, unless it is the argument)`),
  },
  ({ argument, option }) => {
    const account = argument ?? option;
    if (account === undefined) throw usageFailure("the account is missing; add --account ACCOUNT");
    if (option === undefined || option === account) return account;
    const both = `--account is ${JSON.stringify(option)}, but the argument is ${JSON.stringify(argument)}`;
    throw usageFailure(`${both}; give one account`);
  },
);
