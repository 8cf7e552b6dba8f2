import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { type FieldRules, field as fieldOption, Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

import { clean, type Schema } from "./schema.ts";

/** The rules of a field as JSON Schema. */
type Rules = {
  readonly keywords: Schema;
  /** For the elements of a list. */
  readonly items: Schema;
  /** Whether the field may be left out. */
  readonly optional: boolean;
};

export function rulesOf(field: DescField): Rules {
  if (!hasOption(field, fieldOption)) return { keywords: {}, items: {}, optional: true };
  const rules = getOption(field, fieldOption);
  const keywords = keywordsOf(rules);
  const items = rules.type.case === "repeated" && rules.type.value.items;
  return {
    keywords,
    items: items ? keywordsOf(items) : {},
    optional: !rules.required && (mayBeUnset(field, rules) || acceptsZero(keywords)),
  };
}

/** JSON Schema of the CEL rules, by id. The pattern has the same meaning in ECMAScript, Python and RE2. */
const CEL_KEYWORDS: Readonly<Record<string, Schema>> = {
  no_control_characters: { pattern: "^[^\\x00-\\x1f\\x7f-\\x9f]*$" },
  // A text has one pattern. Generators ignore "not".
  not_blank: { not: { pattern: "^\\s+$" } },
  month: { pattern: "^[12][0-9]{3}-(0[1-9]|1[0-2])$" },
};

function keywordsOf(rules: FieldRules): Schema {
  const fromCel = rules.cel.map(({ id }) => {
    const keywords = CEL_KEYWORDS[id];
    if (!keywords) throw new Error(`the CEL rule "${id}" is not described yet`);
    return keywords;
  });
  return Object.assign({}, typeKeywords(rules), ...fromCel);
}

/** An unknown kind of rule stops the generator, so that the document never omits a rule. */
function typeKeywords(rules: FieldRules): Schema {
  const { type } = rules;
  switch (type.case) {
    case undefined:
      return {};
    case "string":
      return clean({
        minLength: positive(type.value.minLen),
        maxLength: positive(type.value.maxLen),
        pattern: type.value.pattern || undefined,
        enum: nonEmpty(type.value.in),
      });
    case "bytes":
      // Bytes are base64 in JSON.
      return clean({ maxLength: positive(((type.value.maxLen + 2n) / 3n) * 4n) });
    case "repeated":
      return clean({
        minItems: positive(type.value.minItems),
        maxItems: positive(type.value.maxItems),
        uniqueItems: type.value.unique || undefined,
      });
    case "int32":
    case "int64":
    case "double": {
      const { greaterThan, lessThan } = type.value;
      return clean({
        [greaterThan.case === "gt" ? "exclusiveMinimum" : "minimum"]: number(greaterThan.value),
        [lessThan.case === "lt" ? "exclusiveMaximum" : "maximum"]: number(lessThan.value),
        enum: nonEmpty(type.value.in.map(Number)),
      });
    }
    default:
      throw new Error(`rules of the kind "${type.case}" are not described yet`);
  }
}

function mayBeUnset(field: DescField, { ignore }: FieldRules): boolean {
  return field.presence === Presence.EXPLICIT || ignore === Ignore.IF_ZERO_VALUE || ignore === Ignore.ALWAYS;
}

/** An omitted field has its zero value, which its rules may refuse. */
function acceptsZero(keywords: Schema): boolean {
  const { minLength, minItems, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = keywords;
  if (Number(minLength ?? minItems ?? minimum ?? 0) > 0 || Number(maximum ?? 0) < 0) return false;
  if (Number(exclusiveMinimum ?? -1) >= 0 || Number(exclusiveMaximum ?? 1) <= 0) return false;
  if (typeof keywords.pattern === "string" && !new RegExp(keywords.pattern, "u").test("")) return false;
  return !Array.isArray(keywords.enum) || keywords.enum.includes("") || keywords.enum.includes(0);
}

function positive(value: bigint): number | undefined {
  return value > 0n ? Number(value) : undefined;
}

function number(value: number | bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

function nonEmpty<Item>(list: readonly Item[]): readonly Item[] | undefined {
  return list.length > 0 ? list : undefined;
}
