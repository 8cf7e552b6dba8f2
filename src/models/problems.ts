import type { z } from "zod";

/** Errors in the models file: one line per mistake, with its position. */
export class ModelsError extends Error {}

/** The allowed values, for an invalid value that zod found; undefined keeps zod's own message. */
export function valueProblem(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${KINDS[issue.expected] ?? `of the kind "${issue.expected}"`}`;
    case "too_small":
      return `must ${sizeOf(issue.origin, "at least", Number(issue.minimum))}`;
    case "too_big":
      return `must ${sizeOf(issue.origin, "at most", Number(issue.maximum))}`;
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    default:
      return undefined;
  }
}

/** All numbers in models.yaml are whole. */
const KINDS: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a whole number",
  string: "a text",
  boolean: "true or false",
  array: "a list",
  object: "a group of fields",
};

const UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ["character", "characters"],
  array: ["entry", "entries"],
};

function sizeOf(origin: string, bound: string, count: number): string {
  const unit = UNITS[origin];
  return unit ? `have ${bound} ${count} ${unit[count === 1 ? 0 : 1]}` : `be ${bound} ${count}`;
}

/** The names of fields and the indexes of list items that lead to a value of a file. */
export type Path = readonly PropertyKey[];

/** A path in the form "models[0].upstream.base_url". */
export function fieldOf(path: Path): string {
  return path.map((key, at) => (typeof key === "number" ? `[${key}]` : `${at === 0 ? "" : "."}${String(key)}`)).join("");
}

export function valueAt(content: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | null | undefined)?.[key], content);
}
