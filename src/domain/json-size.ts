import type { JsonObject, JsonValue } from "./json.ts";

/** Whether the JSON text of a value is longer than `max` characters, apart from escapes. Stops at the limit. */
export function isJsonLonger(value: JsonValue, max: number): boolean {
  return remaining(value, max) < 0;
}

function remaining(value: JsonValue, max: number): number {
  if (typeof value === "string") return max - value.length - 2;
  if (typeof value !== "object" || value === null) return max - String(value).length;
  let rest = max - 2;
  if (Array.isArray(value)) {
    for (const item of value as readonly JsonValue[]) {
      rest = remaining(item, rest - 1);
      if (rest < 0) return rest;
    }
    return rest;
  }
  const object = value as JsonObject;
  // Object.entries takes twice as long for an object with many names.
  for (const name in object) {
    rest = remaining(object[name] as JsonValue, rest - name.length - 4);
    if (rest < 0) return rest;
  }
  return rest;
}
