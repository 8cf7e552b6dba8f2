import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { isUntyped, MAX_UNTYPED_CHARACTERS } from "./untyped-values.ts";

/** The maximum number of characters that the .proto allows in the texts of a field. */
export function maxCharactersOf(field: DescField): number {
  if (isUntyped(field.parent)) return MAX_UNTYPED_CHARACTERS;
  if (!hasOption(field, fieldRules)) return Number.POSITIVE_INFINITY;
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  const max = rules?.case === "string" ? rules.value.maxLen : 0n;
  return max === 0n ? Number.POSITIVE_INFINITY : Number(max);
}

export function tooLong(max: number): string {
  return `must be at most ${max} characters`;
}
