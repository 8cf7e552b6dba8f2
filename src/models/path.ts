/** The names of fields and the indexes of list items that lead to a value of a file. */
export type Path = readonly PropertyKey[];

/** A path in the form "models[0].upstream.base_url". */
export function fieldOf(path: Path): string {
  return path
    .map((key, at) => (typeof key === "number" ? `[${key}]` : `${at === 0 ? "" : "."}${String(key)}`))
    .join("");
}

/** The value at the path; undefined if there is none. */
export function valueAt(content: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Record<PropertyKey, unknown> | null | undefined)?.[key],
    content,
  );
}
