/** Messages of protovalidate, and their replacements. */
const PLAIN: readonly (readonly [RegExp, string])[] = [
  [/^must be at least 1 characters$/, "must not be empty"],
  [/^must contain at least 1 item\(s\)$/, "must not be empty"],
  [/^must contain at least (\d+) item\(s\)$/, "must have at least $1 items"],
  [/^must contain no more than (\d+) item\(s\)$/, "must have at most $1 items"],
  [/^must be greater than or equal to (\S+) and less than or equal to (\S+)$/, "must be from $1 to $2"],
  [/^must be greater than (\S+) and less than or equal to (\S+)$/, "must be greater than $1 and at most $2"],
  [/^must be greater than or equal to (\S+)$/, "must be at least $1"],
  // An empty value in the list means that the field may be absent; the message omits it.
  [/^must be in list \[(?:, )?(.*)\]$/, "must be one of: $1"],
  [/^repeated value must contain unique items$/, "must not contain duplicates"],
  [/^value is required$/, "is required"],
];

/** Rewrites the message of a violation in the style of the other errors. */
export function plainViolation(message: string): string {
  const [pattern, text] = PLAIN.find(([candidate]) => candidate.test(message)) ?? [];
  return pattern && text ? message.replace(pattern, text) : message;
}
