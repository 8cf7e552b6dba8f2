/** A name with an escape, or an item of a list with one. */
const ESCAPED_NAME = /[{,]\s*"[^"\\]*\\/;

/** A string, and the colon after it if it is the name of a member. */
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/gs;

/**
 * Whether JSON.parse could read a wrong name. For a name with an escape, the JSON.parse of V8 13.6 can return the name
 * of another object that it parsed before, if that name begins with the characters of the escape.
 */
export function mayMisreadName(text: string): boolean {
  return text.includes("\\") && ESCAPED_NAME.test(text);
}

/** JSON.parse with the right names. */
export function parseJson(text: string): unknown {
  // The search for strings takes quadratic time in a text whose last string does not end, so JSON.parse refuses that first.
  const value: unknown = JSON.parse(text);
  if (!mayMisreadName(text)) return value;
  const names: string[] = [];
  const numbered = text.replace(STRING, (string: string, colon: string | undefined) => {
    if (colon === undefined) return string;
    // JSON.parse reads a string alone correctly.
    const name = JSON.parse(string.slice(0, -colon.length)) as string;
    return `"n${names.push(name) - 1}":`;
  });
  return JSON.parse(numbered, (_, value: unknown) => withNames(value, names));
}

/** Replaces the numbers of names by the names. */
function withNames(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value);
  return Object.fromEntries(members.map(([number, member]) => [names[Number(number.slice(1))], member]));
}
