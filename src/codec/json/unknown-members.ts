import type { DescMessage } from "@bufbuild/protobuf";
import { fieldForUnknown } from "../../rules/codec-options.ts";
import { invalid } from "../problem.ts";
import { setOwn } from "../set-own.ts";
import type { Steps } from "../steps.ts";
import type { JsonScanner } from "./json-scanner.ts";
import { readJsonValue } from "./json-value-reader.ts";

/** Maximum number of unknown members that a request keeps. */
const MAX_COLLECTED = 64;
const MAX_NAME_CHARACTERS = 100;

type Collector = (scanner: JsonScanner, name: string, into: Record<string, unknown>) => Steps<void>;

/** Reads unknown members into the field of the message that collects them; undefined if there is no such field. */
export function collectorOf(desc: DescMessage): Collector | undefined {
  const field = fieldForUnknown(desc);
  if (!field) return undefined;
  return function* (scanner, name, into) {
    const shown = name.slice(0, MAX_NAME_CHARACTERS);
    into[field.localName] ??= {};
    const collected = into[field.localName] as Record<string, unknown>;
    if (Object.keys(collected).length === MAX_COLLECTED) {
      throw invalid(shown, `is not a field of this request, like ${MAX_COLLECTED} others`);
    }
    setOwn(collected, name, yield* readJsonValue(scanner, shown));
  };
}
