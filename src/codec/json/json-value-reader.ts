import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { TOO_MANY_UNTYPED } from "../../rules/untyped-values.ts";
import { invalid } from "../problem.ts";
import type { Steps } from "../steps.ts";
import type { JsonScanner } from "./json-scanner.ts";

/** An object or a list that is being read. */
type Open =
  | { readonly kind: "object"; readonly value: JsonObject; name: string }
  | { readonly kind: "array"; readonly value: JsonValue[] };

/**
 * Reads any JSON as plain values, in parts. It is one loop, because a generator for each value would take
 * several times as long.
 */
export function* readJsonValue(scanner: JsonScanner, path: string): Steps<JsonValue> {
  const stack: Open[] = [];
  for (;;) {
    if (!scanner.countUntyped()) throw invalid(path, TOO_MANY_UNTYPED);
    if (scanner.isDue()) yield;
    const kind = scanner.peek();
    let value: JsonValue;
    if (kind === "object" || kind === "array") {
      const short = scanner.shortUntyped();
      value = short ?? (kind === "object" ? {} : []);
      if (!short && scanner.enterContainer(kind)) {
        stack.push(opened(scanner, value));
        continue;
      }
    } else if (kind === "string") value = scanner.shortString() ?? ((yield* scanner.string()) as string);
    else value = readShort(scanner, kind);
    const whole = endOf(scanner, stack, value);
    if (whole !== undefined) return whole;
  }
}

/** Reads a scalar at once. Returns undefined and consumes nothing for other values. */
export function readShortJson(scanner: JsonScanner, path: string): JsonValue | undefined {
  const kind = scanner.peek();
  if (kind === "object" || kind === "array") return undefined;
  const value = kind === "string" ? scanner.shortString() : readShort(scanner, kind);
  if (value !== undefined && !scanner.countUntyped()) throw invalid(path, TOO_MANY_UNTYPED);
  return value;
}

/** Puts a value into its container, and each container that ends there into its own; returns the outermost. */
function endOf(scanner: JsonScanner, stack: Open[], value: JsonValue): JsonValue | undefined {
  let ended = value;
  for (let open = stack.at(-1); open; open = stack.at(-1)) {
    if (open.kind === "array") open.value.push(ended);
    else setOwn(open.value, open.name, ended);
    if (scanner.next(open.kind)) {
      if (open.kind === "object") open.name = nextName(scanner, open.value);
      return undefined;
    }
    ended = open.value;
    stack.pop();
  }
  return ended;
}

function opened(scanner: JsonScanner, value: JsonObject | JsonValue[]): Open {
  if (Array.isArray(value)) return { kind: "array", value };
  return { kind: "object", value, name: scanner.name() };
}

function nextName(scanner: JsonScanner, object: JsonObject): string {
  const name = scanner.name();
  if (Object.hasOwn(object, name)) throw scanner.duplicate(name);
  return name;
}

function readShort(scanner: JsonScanner, kind: "number" | "true" | "false" | "null"): JsonValue {
  if (kind === "number") return scanner.finite();
  scanner.literal(kind);
  return kind === "null" ? null : kind === "true";
}

/** Sets a property of a plain object. Assigning "__proto__" would set the prototype. */
export function setOwn(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
