import type { DescMessage } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { DomainError } from "../../domain/errors.ts";
import { tooMany } from "../../rules/list-limits.ts";
import { tooLong, tooManyBytes } from "../../rules/text-limits.ts";
import { Cursor, malformed } from "./cursor.ts";
import { type FieldPlan, type MessagePlan, planOf } from "./field-plan.ts";

/** More values than any message can have; 32 MiB could hold sixteen million. */
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
