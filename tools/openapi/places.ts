import type { ExampleValues } from "../../src/server/pages/openapi-page.ts";
import type { Schema } from "./schema.ts";

/** A placeholder in place of each value. The server fills them in. */
export function placeholdersOf(values: ExampleValues): ExampleValues {
  const roles = Object.entries(values).map(([role, ofRole]) => {
    const names = Object.keys(ofRole).map((name) => [name, `{${role}.${name}}`]);
    return [role, Object.fromEntries(names)];
  });
  return Object.fromEntries(roles) as ExampleValues;
}

/** The texts with placeholders in a document, by their JSON pointers. */
export function placesOf(document: Schema, values: ExampleValues): Readonly<Record<string, string>> {
  const placeholder = new RegExp(`\\{(${Object.keys(values).join("|")})\\.\\w+\\}`);
  const placesIn = (value: unknown, at: string): [string, string][] => {
    if (typeof value === "string") return placeholder.test(value) ? [[at, value]] : [];
    if (typeof value !== "object" || value === null) return [];
    const escaped = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1");
    return Object.entries(value).flatMap(([name, member]) => placesIn(member, `${at}/${escaped(name)}`));
  };
  return Object.fromEntries(placesIn(document, ""));
}
