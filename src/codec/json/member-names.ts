import type { DescField, DescOneof } from "@bufbuild/protobuf";
import { invalid } from "../problem.ts";
import type { JsonScanner } from "./json-scanner.ts";
import { hasOwnNull } from "./well-known.ts";

/** The names that the JSON object of a message has so far: each field, and each oneof, can be given once. */
export class MemberNames {
  readonly #scanner: JsonScanner;
  readonly #known = new Map<DescField | DescOneof, string>();
  #unknown: Set<string> | undefined;

  constructor(scanner: JsonScanner) {
    this.#scanner = scanner;
  }

  /** The scanner is before the value of the member. */
  add(field: DescField, name: string, where: string): void {
    const earlier = this.#known.get(field);
    if (earlier === name) throw this.#scanner.duplicate(name);
    if (earlier !== undefined) throw invalid(where, "is given twice, in snake_case and in camelCase");
    this.#known.set(field, name);
    const { oneof } = field;
    // A member that is null counts as absent, so another one may be set.
    if (!oneof || (this.#scanner.peek() === "null" && !hasOwnNull(field))) return;
    if (this.#known.has(oneof))
      throw invalid(where, `must not be set together with another field of "${oneof.name}"`);
    this.#known.set(oneof, name);
  }

  addUnknown(name: string): void {
    this.#unknown ??= new Set();
    if (this.#unknown.has(name)) throw this.#scanner.duplicate(name);
    this.#unknown.add(name);
  }
}
