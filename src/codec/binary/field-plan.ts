import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { maxItemsOf } from "../../rules/list-limits.ts";
import { maxBytesOf, maxCharactersOf } from "../../rules/text-limits.ts";
import { holdsPlainObject } from "../../rules/untyped-values.ts";

/**
 * Limit for a text or bytes field without a limit in the .proto: far above real values, and decoded at once.
 */
const MAX_UNRULED_BYTES = 4_194_304;

/** The valid wire formats of a field, prepared for the check. */
export type FieldPlan = {
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

export type MessagePlan = {
  readonly fields: ReadonlyMap<number, FieldPlan>;
  readonly counters: number;
};

const plans = new WeakMap<DescMessage, MessagePlan>();

export function planOf(desc: DescMessage): MessagePlan {
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
  const maxCharacters =
    field.scalar === ScalarType.STRING ? maxCharactersOf(field) : Number.POSITIVE_INFINITY;
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
