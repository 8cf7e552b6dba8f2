import { NO_OPTIONS, type PromptOptions } from "../domain/prompt.ts";

type GivenOptions = { readonly [Name in keyof PromptOptions]: PromptOptions[Name] | undefined };

/** Without the parameters that are undefined. Requests without parameters share one object. */
export function presentOptions(given: GivenOptions): PromptOptions {
  let options: Record<string, unknown> | undefined;
  for (const name in given) {
    const value = given[name as keyof GivenOptions];
    if (value === undefined) continue;
    options ??= {};
    options[name] = value;
  }
  return options ?? NO_OPTIONS;
}
