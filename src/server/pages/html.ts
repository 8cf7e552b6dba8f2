/** HTML that is safe to insert in a page. */
export class Html {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

type Value = string | Html | readonly Html[];

/** A template of HTML. Inserted strings are shown as text. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  const inserted = values.map(sourceOf);
  return new Html(parts.map((part, i) => part + (inserted[i] ?? "")).join(""));
}

/** Replaces each {{name}} of a page by its value. */
export function fill(page: string, values: Readonly<Record<string, Value>>): string {
  return page.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the placeholder {{${name}}} of the page has no value`);
    return sourceOf(value);
  });
}

function sourceOf(value: Value): string {
  if (typeof value === "string") return value.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
  if (value instanceof Html) return value.source;
  return value.map(({ source }) => source).join("");
}
