import type { DescField, DescOneof } from "@bufbuild/protobuf";
import { invalid } from "../problem.ts";
import type { JsonScanner } from "./json-scanner.ts";
import { hasOwnNull } from "./well-known.ts";

/** The names that the JSON object of a message has so far: each field, and each oneof, can be given once. */
export class MemberNames {
  readonly #scanner: JsonScanner;
  /** In lists, because a Map costs more than the usual number of members. */
  readonly #given: (DescField | DescOneof)[] = [];
  readonly #names: string[] = [];
  #unknown: Set<string> | undefined;

  constructor(scanner: JsonScanner) {
    this.#scanner = scanner;
  }

  /** The scanner is before the value of the member. */
  add(field: DescField, name: string, where: string): void {
    const earlier = this.#given.indexOf(field);
    if (earlier >= 0) {
      if (this.#names[earlier] === name) throw this.#scanner.duplicate(name);
      throw invalid(where, "is given twice, in snake_case and in camelCase");
    }
    this.#remember(field, name);
    const { oneof } = field;
    // A member that is null counts as absent, so another one may be set.
    if (!oneof || (this.#scanner.peek() === "null" && !hasOwnNull(field))) return;
    if (this.#given.includes(oneof))
      throw invalid(where, `must not be set together with another field of "${oneof.name}"`);
    this.#remember(oneof, name);
  }

  #remember(given: DescField | DescOneof, name: string): void {
    this.#given.push(given);
    this.#names.push(name);
  }

  addUnknown(name: string): void {
    this.#unknown ??= new Set();
    if (this.#unknown.has(name)) throw this.#scanner.duplicate(name);
    this.#unknown.add(name);
  }
}
