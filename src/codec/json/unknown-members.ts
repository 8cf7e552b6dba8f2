import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { fieldForUnknown } from "../../rules/codec-options.ts";
import { invalid } from "../problem.ts";
import { setOwn } from "../set-own.ts";
import type { Steps } from "../steps.ts";
import type { JsonScanner } from "./json-scanner.ts";
import { readJsonValue } from "./json-value-reader.ts";

const MAX_NAME_CHARACTERS = 100;

type ReadMember = (scanner: JsonScanner, name: string, into: Record<string, unknown>) => Steps<void>;

type Collector = {
  readonly field: DescField;
  /** Reads an unknown member of the body. */
  readonly readMember: ReadMember;
  /** Reads the collecting field itself, if the body contains it. */
  readonly read: ReadMember;
};

/** Reads unknown members into the field of the message that collects them; undefined if there is no such field. */
export function collectorOf(desc: DescMessage): Collector | undefined {
  const field = fieldForUnknown(desc);
  if (!field) return undefined;
  const readMember: ReadMember = function* (scanner, name, into) {
    const shown = name.slice(0, MAX_NAME_CHARACTERS);
    into[field.localName] ??= {};
    const collected = into[field.localName] as Record<string, unknown>;
    if (Object.hasOwn(collected, name)) throw invalid(shown, `is given twice, once inside "${field.name}"`);
    setOwn(collected, name, yield* readJsonValue(scanner, shown));
  };
  const read: ReadMember = function* (scanner, path, into) {
    const kind = scanner.peek();
    if (kind === "null") return scanner.literal(kind);
    if (kind !== "object") throw invalid(path, "must be an object");
    into[field.localName] ??= {};
    for (const name of scanner.members()) yield* readMember(scanner, name, into);
  };
  return { field, readMember, read };
}
