import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

const known = new WeakMap<DescField, number>();

/**
 * The maximum number of items that the .proto allows in a list. It is checked first, so that excess items
 * cost no work.
 */
export function maxItemsOf(field: DescField): number {
  let max = known.get(field);
  if (max === undefined) {
    max = readMaxItems(field);
    known.set(field, max);
  }
  return max;
}

function readMaxItems(field: DescField): number {
  if (field.fieldKind !== "list" || !hasOption(field, fieldRules)) return Number.POSITIVE_INFINITY;
  const { type } = getOption(field, fieldRules);
  const max = type.case === "repeated" ? type.value.maxItems : 0n;
  return max === 0n ? Number.POSITIVE_INFINITY : Number(max);
}

export function tooMany(max: number): string {
  return `must have at most ${max} items`;
}
