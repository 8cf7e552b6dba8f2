import { create } from "@bufbuild/protobuf";
import { ListValueSchema, NullValue, StructSchema, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { tooLong } from "../../rules/text-limits.ts";
import { MAX_UNTYPED_CHARACTERS, TOO_MANY_UNTYPED } from "../../rules/untyped-values.ts";
import { invalid } from "../problem.ts";
import type { Steps } from "../steps.ts";
import type { JsonScanner } from "./json-scanner.ts";

/** Reads any JSON as a google.protobuf.Value, in parts. */
export function* readUntyped(scanner: JsonScanner, path: string): Steps<Value> {
  if (!scanner.countUntyped()) throw invalid(path, TOO_MANY_UNTYPED);
  if (scanner.isDue()) yield;
  const kind = scanner.peek();
  switch (kind) {
    case "object": {
      const struct = create(StructSchema);
      yield* readFields(scanner, path, struct.fields);
      return untyped({ case: "structValue", value: struct });
    }
    case "array": {
      const list = create(ListValueSchema);
      for (const _ of scanner.items()) list.values.push(yield* readUntyped(scanner, path));
      return untyped({ case: "listValue", value: list });
    }
    case "string": {
      const value = yield* scanner.string(MAX_UNTYPED_CHARACTERS);
      if (value === undefined) throw invalid(path, tooLong(MAX_UNTYPED_CHARACTERS));
      return untyped({ case: "stringValue", value });
    }
    case "number":
      return untyped({ case: "numberValue", value: scanner.finite() });
    case "true":
    case "false":
      scanner.literal(kind);
      return untyped({ case: "boolValue", value: kind === "true" });
    case "null":
      scanner.literal(kind);
      return untyped({ case: "nullValue", value: NullValue.NULL_VALUE });
  }
}

function* readFields(scanner: JsonScanner, path: string, into: Record<string, Value>): Steps<void> {
  for (const name of scanner.members()) {
    const value = yield* readUntyped(scanner, path);
    // Not an assignment: assigning "__proto__" would set the prototype.
    Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true });
  }
}

function untyped(kind: Value["kind"]): Value {
  const value = create(ValueSchema);
  value.kind = kind;
  return value;
}
