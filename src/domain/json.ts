import { randomUUID } from "node:crypto";

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [name: string]: JsonValue };

export type JsonObject = { readonly [name: string]: JsonValue };

/** The texts of objects that are measured and sent, so that each is written once. */
const texts = new WeakMap<JsonObject, string>();

/** The JSON text of an object that no longer changes. */
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

export function knownJsonText(value: unknown): string | undefined {
  return texts.get(value as JsonObject);
}

/** Whether the JSON text of a value is longer than `max` characters, apart from escapes. Stops at the limit. */
export function isJsonLonger(value: JsonValue | Uint8Array, max: number): boolean {
  return remaining(value, max) < 0;
}

function remaining(value: JsonValue | Uint8Array, max: number): number {
  if (typeof value === "string") return max - value.length - 2;
  if (typeof value !== "object" || value === null) return max - String(value).length;
  // A loop over the names of a typed array would list all of them first.
  if (ArrayBuffer.isView(value)) return max - value.byteLength;
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

/** A name with an escape, or an item of a list with one. */
const ESCAPED_NAME = /[{,]\s*"[^"\\]*\\/;

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/sy;
const COLON = /\s*:/y;

/** More than usual texts have. Replacing this many names takes 10 ms; searching a text of this length takes 30 ms. */
const MAX_ESCAPED_NAMES = 10_000;
const MAX_CHARACTERS = 1_048_576;

/** The start of the placeholders; names of peers never start with it. */
const PLACEHOLDER = randomUUID();

/**
 * Whether JSON.parse could read a wrong name. For a name with an escape, the JSON.parse of V8 13.6 can return the name
 * of another object that it parsed before, if that name begins with the characters of the escape.
 */
export function mayMisreadName(text: string): boolean {
  return text.includes("\\") && ESCAPED_NAME.test(text);
}

/** JSON.parse with correct names. Refuses texts with too many escaped names, and long texts with any. */
export function parseJson(text: string): unknown {
  if (!mayMisreadName(text)) return JSON.parse(text);
  if (text.length > MAX_CHARACTERS) throw new SyntaxError("too long for names with escapes");
  const names: string[] = [];
  const value: unknown = JSON.parse(withoutEscapedNames(text, names));
  return names.length === 0 ? value : withNames(value, names);
}

/**
 * Writes each escaped name without escapes or, if it needs one, as a placeholder with its index in `names`. An invalid text
 * stays invalid.
 */
function withoutEscapedNames(text: string, names: string[]): string {
  const parts: string[] = [];
  let copied = 0;
  let replaced = 0;
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', STRING.lastIndex)) {
    STRING.lastIndex = at;
    const string = STRING.exec(text)?.[0];
    // The string does not end, which JSON.parse refuses.
    if (string === undefined) break;
    if (!string.includes("\\")) continue;
    COLON.lastIndex = STRING.lastIndex;
    if (!COLON.test(text)) continue;
    if (++replaced > MAX_ESCAPED_NAMES) throw new SyntaxError("too many names with escapes");
    parts.push(text.slice(copied, at), nameWithoutEscape(string, names));
    copied = STRING.lastIndex;
  }
  return parts.join("") + text.slice(copied);
}

function nameWithoutEscape(string: string, names: string[]): string {
  // JSON.parse reads a string alone correctly.
  const name = JSON.parse(string) as string;
  const written = JSON.stringify(name);
  return written.includes("\\") ? `"${PLACEHOLDER}${names.push(name) - 1}"` : written;
}

function withNames(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = withNames(value[i], names);
    return value;
  }
  if (!hasPlaceholder(value)) {
    const members = value as Record<string, unknown>;
    for (const name in members) members[name] = withNames(members[name], names);
    return value;
  }
  const nameOf = (key: string) => (key.startsWith(PLACEHOLDER) ? names[Number(key.slice(PLACEHOLDER.length))] : key);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [nameOf(key), withNames(member, names)]));
}

/** Or a name that cannot be assigned. */
function hasPlaceholder(value: object): boolean {
  for (const name in value) if (name.startsWith(PLACEHOLDER) || name === "__proto__") return true;
  return false;
}

/** The value of JSON text; undefined, which no JSON text is, for any other text. */
export function jsonIfValid(text: Buffer | string): unknown {
  try {
    return JSON.parse(text.toString());
  } catch {
    return undefined;
  }
}
