import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** The maximum number of characters that the .proto allows in the texts of a field. */
export function maxCharactersOf(field: DescField): number {
  if (!hasOption(field, fieldRules)) return Number.POSITIVE_INFINITY;
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  const max = rules?.case === "string" ? rules.value.maxLen : 0n;
  return max === 0n ? Number.POSITIVE_INFINITY : Number(max);
}

/** The maximum size that the .proto allows for the bytes of a field. */
export function maxBytesOf(field: DescField): number {
  if (!hasOption(field, fieldRules)) return Number.POSITIVE_INFINITY;
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  const max = rules?.case === "bytes" ? rules.value.maxLen : 0n;
  return max === 0n ? Number.POSITIVE_INFINITY : Number(max);
}

export function tooManyBytes(max: number): string {
  return `must be at most ${max} bytes`;
}

export function tooLong(max: number): string {
  return `must be at most ${max} characters`;
}
