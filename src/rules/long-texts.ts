import { type DescField, type DescMessage, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { charactersOf } from "../domain/characters.ts";
import { DomainError } from "../domain/errors.ts";
import { maxCharactersOf, tooLong } from "./text-limits.ts";

/** The validator may count the characters of texts up to this length without a noticeable delay. */
const LONG_UNITS = 4_096;

/** The fields of a message that can contain long texts, directly or in nested messages; usually none. */
type Plan = readonly { readonly field: DescField; readonly inner: DescMessage | undefined }[];

const plans = new WeakMap<DescMessage, Plan>();

/**
 * Returns the request for the validator, which visits every character: texts whose only rule is their length
 * are checked here, and long ones are emptied in a copy.
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
    return Array.isArray(value) ? value.some(isLong) : value !== undefined && isLong(value);
  });
}

function withShortTexts<M extends Message>(desc: DescMessage, message: M, path: string): M {
  const fields = message as unknown as Record<string, unknown>;
  let copy: Record<string, unknown> | undefined;
  for (const { field, inner } of planOf(desc)) {
    const name = field.localName;
    const value = fields[name];
    if (value === undefined) continue;
    const where = path === "" ? field.name : `${path}.${field.name}`;
    const shorten = (item: unknown, at: string) =>
      inner ? withShortTexts(inner, item as Message, at) : shortText(field, item as string, at);
    const short = Array.isArray(value) ? shortItems(value, where, shorten) : shorten(value, where);
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

function shortText(field: DescField, text: string, path: string): string {
  if (text.length <= LONG_UNITS) return text;
  const max = maxCharactersOf(field);
  if (text.length > max && charactersOf(text) > max) throw DomainError.ofField(path, tooLong(max));
  return "";
}

function planOf(desc: DescMessage): Plan {
  let plan = plans.get(desc);
  if (!plan) {
    // A type may contain itself: then only the texts of the outermost message are removed.
    plans.set(desc, []);
    plan = desc.fields.flatMap((field) => {
      if (field.fieldKind === "map" || field.oneof) return [];
      const inner = field.message && planOf(field.message).length > 0 ? field.message : undefined;
      return inner || hasLengthAsOnlyRule(field) ? [{ field, inner }] : [];
    });
    plans.set(desc, plan);
  }
  return plan;
}

function hasLengthAsOnlyRule(field: DescField): boolean {
  if (field.fieldKind !== "scalar" || !hasOption(field, fieldRules)) return false;
  const rules = getOption(field, fieldRules);
  if (rules.type.case !== "string" || rules.cel.length > 0 || maxCharactersOf(field) <= LONG_UNITS)
    return false;
  const { $typeName, $unknown, maxLen, wellKnown, ...others } = rules.type.value;
  return maxLen > 0n && wellKnown.case === undefined && Object.values(others).every(isUnset);
}

function isUnset(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : !value;
}
