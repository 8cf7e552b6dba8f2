/** Part of a JSON Schema. */
export type Schema = { readonly [keyword: string]: unknown };

/** Removes the keywords without a value. */
export function clean(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}
