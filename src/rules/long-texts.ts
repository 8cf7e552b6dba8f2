import { type DescField, type DescMessage, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { charactersOf } from "../domain/characters.ts";
import { DomainError } from "../domain/errors.ts";
import { maxCharactersOf, tooLong } from "./text-limits.ts";

/** The validator may count the characters of texts up to this length, or of a list up to it, without a noticeable delay. */
const LONG_UNITS = 4_096;

/** The fields of a message that can contain long texts, directly or in nested messages; usually none. */
type Plan = readonly {
  readonly field: DescField;
  readonly inner: DescMessage | undefined;
  readonly maxCharacters: number;
}[];

const plans = new WeakMap<DescMessage, Plan>();

/** Replaces a text that was checked: every length that has no rule but a maximum allows it, or a minimum of 1. */
const CHECKED = "x";

/**
 * Returns the request for the validator, which visits every character: texts whose only rule is their length
 * are checked here, and long ones are replaced in a copy.
 */
export function withoutLongTexts<M extends Message>(desc: DescMessage, message: M): M {
  return hasLongTexts(desc, message) ? withShortTexts(desc, message, "") : message;
}

/** Most requests have none, and need neither copies nor the paths of their fields. */
function hasLongTexts(desc: DescMessage, message: Message): boolean {
  const fields = message as unknown as Record<string, unknown>;
  return planOf(desc).some(({ field, inner }) => {
    const value = fields[field.localName];
    const isLong = (item: unknown) =>
      inner ? hasLongTexts(inner, item as Message) : (item as string).length > LONG_UNITS;
    if (!Array.isArray(value)) return value !== undefined && isLong(value);
    return inner ? value.some(isLong) : unitsOf(value) > LONG_UNITS;
  });
}

function unitsOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

function withShortTexts<M extends Message>(desc: DescMessage, message: M, path: string): M {
  const fields = message as unknown as Record<string, unknown>;
  let copy: Record<string, unknown> | undefined;
  for (const { field, inner, maxCharacters } of planOf(desc)) {
    const name = field.localName;
    const value = fields[name];
    if (value === undefined) continue;
    const where = path === "" ? field.name : `${path}.${field.name}`;
    const isList = Array.isArray(value);
    const shorten = (item: unknown, at: string) =>
      inner
        ? withShortTexts(inner, item as Message, at)
        : shortText(item as string, at, maxCharacters, isList ? CHECKED.length : LONG_UNITS);
    const short = isList ? shortItems(value, where, shorten) : shorten(value, where);
    if (short === value) continue;
    copy ??= { ...fields };
    copy[name] = short;
  }
  return (copy ?? message) as M;
}

/** The list itself if no item is shortened. */
function shortItems(
  items: readonly unknown[],
  path: string,
  shorten: (item: unknown, at: string) => unknown,
): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [i, item] of items.entries()) {
    const short = shorten(item, `${path}[${i}]`);
    if (short === item) continue;
    copy ??= [...items];
    copy[i] = short;
  }
  return copy ?? items;
}

function shortText(text: string, path: string, max: number, maxUnits: number): string {
  if (text.length <= maxUnits) return text;
  if (text.length > max && charactersOf(text) > max) throw DomainError.ofField(path, tooLong(max));
  return CHECKED;
}

function planOf(desc: DescMessage): Plan {
  let plan = plans.get(desc);
  if (!plan) {
    // A type may contain itself: then only the texts of the outermost message are removed.
    plans.set(desc, []);
    plan = desc.fields.flatMap((field) => {
      if (field.fieldKind === "map" || field.oneof) return [];
      const inner = field.message && planOf(field.message).length > 0 ? field.message : undefined;
      if (!inner && !hasLengthAsOnlyRule(field)) return [];
      return { field, inner, maxCharacters: maxCharactersOf(field) };
    });
    plans.set(desc, plan);
  }
  return plan;
}

function hasLengthAsOnlyRule(field: DescField): boolean {
  if (!hasOption(field, fieldRules)) return false;
  const { type, cel } = getOption(field, fieldRules);
  if (type.case === "repeated" && type.value.unique) return false;
  const rules = type.case === "repeated" ? type.value.items : { type, cel };
  if (rules?.type.case !== "string" || rules.cel.length > 0 || maxCharactersOf(field) <= LONG_UNITS)
    return false;
  const { $typeName, $unknown, maxLen, minLen, wellKnown, ...others } = rules.type.value;
  const isAllowed = maxLen > 0n && minLen <= CHECKED.length && wellKnown.case === undefined;
  return isAllowed && Object.values(others).every(isUnset);
}

function isUnset(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : !value;
}
