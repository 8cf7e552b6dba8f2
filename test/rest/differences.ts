import type { Detail } from "./answers.ts";

/** The paths at which names or types differ. A timestamp and null are equal, and so are the prices of an entry. */
export function differences(example: unknown, actual: unknown, path = "$"): string[] {
  const [one, other] = [kindOf(example), kindOf(actual)];
  if (one !== other) {
    const nullable = [one, other].includes("null") && /(_at|\.prices)$/.test(path);
    return nullable ? [] : [`${path}: ${one} in the example, ${other} in the answer`];
  }
  if (Array.isArray(example) && Array.isArray(actual)) {
    if (example.length > 0 && actual.length === 0) return [`${path}: empty in the answer`];
    const types = [example, actual].map((list) => list.map((one) => (one as Detail)?.["@type"]).join());
    if (path.endsWith(".details") && types[0] !== types[1])
      return [`${path}: ${types[0]} in the example, ${types[1]} in the answer`];
    // The answer can have more items: the first and the last are compared.
    const ends = [0, -1].slice(0, example.length);
    return ends.flatMap((i) => differences(example.at(i), actual.at(i), `${path}[${i}]`));
  }
  if (one !== "object") return [];
  const [left, right] = [example, actual] as Record<string, unknown>[];
  const names = new Set([...Object.keys(left ?? {}), ...Object.keys(right ?? {})]);
  return [...names].flatMap((name) => differences(left?.[name], right?.[name], `${path}.${name}`));
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}
