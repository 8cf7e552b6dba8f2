import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { DomainError } from "../../domain/errors.ts";
import { maxBytesOf, maxCharactersOf, maxItemsOf, tooLong, tooMany, tooManyBytes } from "../../rules/body-limits.ts";
import { holdsPlainObject } from "../../rules/untyped-values.ts";
import { Cursor, malformed } from "./cursor.ts";

/** More values than any message can have; 32 MiB could contain sixteen million. */
const MAX_VALUES = 100_000;

/** Deeper than any legitimate message, and far below the limit of the stack. */
const MAX_DEPTH = 64;

const NO_COUNTERS = new Uint32Array(0);

/**
 * Checks a binary message before it is decoded, so that lists and texts over the limits of the .proto take no
 * memory. Untyped fields are checked as they are decoded.
 */
export function checkMessage(desc: DescMessage, bytes: Uint8Array): void {
  new MessageCheck(bytes).check(planOf(desc), 0, bytes.length);
}

class MessageCheck {
  readonly #bytes: Uint8Array;
  /** The fields that lead to the current message, with the item of each, for the error message. */
  readonly #path: { readonly plan: FieldPlan; readonly item: number }[] = [];
  #values = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  check(plan: MessagePlan, start: number, end: number): void {
    const counters = plan.counters === 0 ? NO_COUNTERS : new Uint32Array(plan.counters);
    const cursor = new Cursor(this.#bytes, start, end);
    while (!cursor.isAtEnd) {
      const tag = cursor.uint32();
      const wireType = tag & 7;
      const field = plan.fields.get(tag >>> 3);
      this.#count(1);
      if (!field) {
        if (tag >>> 3 === 0) throw malformed();
        cursor.skip(wireType);
        continue;
      }
      const isPacked = field.packedType !== undefined && wireType === WireType.LengthDelimited;
      // The decoder reads a field by its declared type; the check must find the same boundaries.
      if (wireType !== field.wireType && !isPacked) throw malformed();
      if (wireType === WireType.LengthDelimited) this.#lengthDelimited(field, cursor, counters);
      else {
        this.#countItems(field, counters, 1);
        cursor.skip(wireType);
      }
    }
  }

  #lengthDelimited(plan: FieldPlan, cursor: Cursor, counters: Uint32Array): void {
    const length = cursor.uint32();
    const end = cursor.endOf(length);
    if (plan.packedType !== undefined) {
      const items = packedItems(this.#bytes, cursor.at, end, plan.packedType);
      this.#count(items);
      this.#countItems(plan, counters, items);
    } else {
      this.#countItems(plan, counters, 1);
      const item = plan.counter < 0 ? -1 : (counters[plan.counter] as number) - 1;
      if (length > plan.maxBytes) throw this.#refusal(plan, item, textRefusal(plan));
      if (plan.inner) {
        if (this.#path.length >= MAX_DEPTH) throw malformed();
        this.#path.push({ plan, item });
        this.check(plan.inner(), cursor.at, end);
        this.#path.pop();
      }
    }
    cursor.at = end;
  }

  #countItems(plan: FieldPlan, counters: Uint32Array, items: number): void {
    if (plan.counter < 0) return;
    const count = (counters[plan.counter] as number) + items;
    if (count > plan.maxItems) throw this.#refusal(plan, -1, tooMany(plan.maxItems));
    counters[plan.counter] = count;
  }

  #count(values: number): void {
    this.#values += values;
    if (this.#values > MAX_VALUES) {
      throw new DomainError("invalid_argument", {
        message: `The message has more than ${MAX_VALUES} values.`,
      });
    }
  }

  #refusal(plan: FieldPlan, item: number, text: string): DomainError {
    const path = [...this.#path, { plan, item }].map((step) =>
      step.item < 0 ? step.plan.name : `${step.plan.name}[${step.item}]`,
    );
    return DomainError.ofField(path.join("."), text);
  }
}

function textRefusal({ maxCharacters, maxBytes }: FieldPlan): string {
  return Number.isFinite(maxCharacters) ? tooLong(maxCharacters) : tooManyBytes(maxBytes);
}

/** The number of packed values; the last one must end where the run ends. */
function packedItems(bytes: Uint8Array, start: number, end: number, type: WireType): number {
  if (type !== WireType.Varint) {
    const items = (end - start) / (type === WireType.Bit64 ? 8 : 4);
    if (!Number.isInteger(items)) throw malformed();
    return items;
  }
  if (end > start && (bytes[end - 1] as number) >= 0x80) throw malformed();
  let items = 0;
  for (let at = start; at < end && items <= MAX_VALUES; at++) if ((bytes[at] as number) < 0x80) items++;
  return items;
}

/**
 * Limit for a text or bytes field without a limit in the .proto: far above real values, and decoded at once.
 */
const MAX_UNRULED_BYTES = 4_194_304;

/** The valid wire formats of a field, prepared for the check. */
type FieldPlan = {
  readonly name: string;
  readonly wireType: WireType;
  /** Repeated numbers may also be packed in one run of bytes: the wire type of one number in it. */
  readonly packedType: WireType | undefined;
  readonly maxItems: number;
  /** The index of the message's counter for the items; negative if the field is not a list. */
  readonly counter: number;
  readonly maxCharacters: number;
  readonly maxBytes: number;
  /** The plan of the message or map entry in the field; undefined if the field is an object. */
  readonly inner: (() => MessagePlan) | undefined;
};

type MessagePlan = {
  readonly fields: ReadonlyMap<number, FieldPlan>;
  readonly counters: number;
};

const plans = new WeakMap<DescMessage, MessagePlan>();

function planOf(desc: DescMessage): MessagePlan {
  let plan = plans.get(desc);
  if (!plan) {
    const fields = new Map<number, FieldPlan>();
    let counters = 0;
    for (const field of desc.fields) {
      const isList = field.fieldKind === "list";
      fields.set(field.number, planField(field, isList ? counters : -1));
      if (isList) counters++;
    }
    plan = { fields, counters };
    plans.set(desc, plan);
  }
  return plan;
}

function planField(field: DescField, counter: number): FieldPlan {
  const { name } = field;
  if (field.fieldKind === "map") {
    const entry = planEntry(field);
    return {
      // Decoded at once, like a text.
      ...plain(name, ScalarType.BYTES, undefined),
      inner: () => entry,
    };
  }
  const plan = plain(name, field.scalar, field.message);
  const maxCharacters = field.scalar === ScalarType.STRING ? maxCharactersOf(field) : Number.POSITIVE_INFINITY;
  const maxBytes = field.scalar === ScalarType.BYTES ? maxBytesOf(field) : maxCharacters * 4;
  return {
    ...plan,
    // An object is checked as it is decoded.
    inner: holdsPlainObject(field) ? undefined : plan.inner,
    packedType: counter >= 0 && plan.wireType !== WireType.LengthDelimited ? plan.wireType : undefined,
    maxItems: maxItemsOf(field),
    counter,
    maxCharacters,
    maxBytes: Number.isFinite(maxBytes) ? maxBytes : plan.maxBytes,
  };
}

/** On the wire an entry of a map is a message of two fields. */
function planEntry(field: DescField & { fieldKind: "map" }): MessagePlan {
  return {
    counters: 0,
    fields: new Map([
      [1, plain("key", field.mapKey, undefined)],
      [2, plain("value", field.scalar, field.message)],
    ]),
  };
}

function plain(name: string, scalar: ScalarType | undefined, message: DescMessage | undefined): FieldPlan {
  const isText = scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
  return {
    name,
    wireType: message ? WireType.LengthDelimited : wireTypeOf(scalar),
    packedType: undefined,
    maxItems: Number.POSITIVE_INFINITY,
    counter: -1,
    maxCharacters: Number.POSITIVE_INFINITY,
    maxBytes: isText ? MAX_UNRULED_BYTES : Number.POSITIVE_INFINITY,
    inner: message && (() => planOf(message)),
  };
}

/** A field without a scalar type is an enum. */
function wireTypeOf(scalar: ScalarType | undefined): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
