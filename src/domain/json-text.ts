import type { JsonObject, JsonValue } from "./json.ts";

/** The texts of objects that are measured and sent, so that each is written once. */
const texts = new WeakMap<JsonObject, string>();

/** The JSON text of an object that nothing changes any more. */
export function jsonTextOf(object: JsonObject): string {
  let text = texts.get(object);
  if (text === undefined) {
    text = JSON.stringify(object);
    texts.set(object, text);
  }
  return text;
}

/** Keeps the text of an object as its caller wrote it: JSON.stringify() may write the same value differently. */
export function keepJsonText(object: JsonObject, text: string): void {
  texts.set(object, text);
}

/** The text of an object if it is known. */
export function knownJsonText(value: unknown): string | undefined {
  return texts.get(value as JsonObject);
}

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
  const known = texts.get(object);
  if (known !== undefined) return max - known.length;
  // Object.entries takes twice as long for an object with many names.
  for (const name in object) {
    rest = remaining(object[name] as JsonValue, rest - name.length - 4);
    if (rest < 0) return rest;
  }
  return rest;
}
