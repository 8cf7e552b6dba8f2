import { createHash } from "node:crypto";
import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import { nextTurn } from "../domain/fairness.ts";
import type { JsonObject, JsonValue } from "../domain/json.ts";
import { holdsPlainObject, isUntyped, jsonOf, readField } from "./untyped-values.ts";

/** Hashing one slice takes about a millisecond; then the event loop runs other work. */
const SLICE_CHARACTERS = 524_288;
/** Encoding a short value takes as long as hashing this many characters. */
const VALUE_CHARACTERS = 64;

/** Marks the end of a message, where the number of a field can be. */
const END = "0";

/**
 * The digest of a request to a method. It covers every field, so requests have the same digest only if they are equal;
 * it does not depend on the protocol of the call or on the order of JSON members. The field `selectedBy`, with which REST
 * selects the method, is left out: over RPC the name of the method says the same.
 */
export async function digestOfRequest(rpc: string, desc: DescMessage, request: Message, selectedBy: string): Promise<string> {
  const hash = new SlicedHash();
  for (const _ of rpcSteps(hash, rpc, desc, request, selectedBy)) await nextTurn();
  return hash.digest();
}

/** Yields when other work should run. */
type Pauses = Generator<undefined, void, undefined>;

function* rpcSteps(hash: SlicedHash, rpc: string, desc: DescMessage, request: Message, selectedBy: string): Pauses {
  yield* hash.text(rpc);
  const fields = desc.fields.filter(({ name }) => name !== selectedBy);
  yield* fieldsSteps(hash, fields, request);
}

/** The number of each field that is set, followed by its value, in the order of the .proto. */
function* fieldsSteps(hash: SlicedHash, fields: readonly DescField[], message: Message): Pauses {
  for (const field of fields) {
    const value = readField(field, message);
    if (value === undefined) continue;
    yield* hash.text(String(field.number));
    yield* fieldSteps(hash, field, value);
  }
  yield* hash.text(END);
}

function* fieldSteps(hash: SlicedHash, field: DescField, value: unknown): Pauses {
  if (field.fieldKind === "list") {
    const items = value as readonly unknown[];
    yield* hash.text(String(items.length));
    for (const item of items) yield* valueSteps(hash, field, item);
  } else if (field.fieldKind === "map") {
    const map = value as Readonly<Record<string, unknown>>;
    const names = Object.keys(map).sort();
    yield* hash.text(String(names.length));
    for (const name of names) {
      yield* hash.text(name);
      yield* valueSteps(hash, field, map[name]);
    }
  } else {
    yield* valueSteps(hash, field, value);
  }
}

function* valueSteps(hash: SlicedHash, field: DescField, value: unknown): Pauses {
  const { message } = field;
  if (message) {
    if (isUntyped(message)) yield* jsonSteps(hash, jsonOf(value as Value));
    else if (holdsPlainObject(field)) yield* jsonSteps(hash, value as JsonValue);
    else yield* fieldsSteps(hash, message.fields, value as Message);
  } else if (field.scalar === ScalarType.BYTES) yield* hash.bytes(value as Uint8Array);
  else yield* hash.text(String(value));
}

/** The first character of a value is that of its type. */
function* jsonSteps(hash: SlicedHash, json: JsonValue): Pauses {
  if (typeof json === "string") yield* hash.text(`"${json}`);
  else if (typeof json !== "object" || json === null) yield* hash.text(String(json));
  else if (Array.isArray(json)) {
    const items = json as readonly JsonValue[];
    yield* hash.text(`[${items.length}`);
    for (const item of items) yield* jsonSteps(hash, item);
  } else {
    const names = Object.keys(json).sort();
    yield* hash.text(`{${names.length}`);
    for (const name of names) {
      yield* hash.text(name);
      yield* jsonSteps(hash, (json as JsonObject)[name] as JsonValue);
    }
  }
}

/** Each value follows its length, so two different lists of values never give the same bytes. */
class SlicedHash {
  readonly #hash = createHash("sha256");
  /** Short texts are hashed together. */
  #pending = "";
  #room = SLICE_CHARACTERS;

  *text(text: string): Pauses {
    this.#pending += `${text.length}:`;
    this.#room -= VALUE_CHARACTERS;
    for (let at = 0; at < text.length; at += SLICE_CHARACTERS) {
      const slice = text.slice(at, at + SLICE_CHARACTERS);
      this.#pending += slice;
      this.#room -= slice.length;
      if (this.#room <= 0) yield this.#flush();
    }
    if (this.#room <= 0) yield this.#flush();
  }

  *bytes(bytes: Uint8Array): Pauses {
    yield* this.text(String(bytes.length));
    for (let at = 0; at < bytes.length; at += SLICE_CHARACTERS) {
      this.#flush();
      this.#hash.update(bytes.subarray(at, at + SLICE_CHARACTERS));
      yield;
    }
  }

  digest(): string {
    this.#flush();
    return this.#hash.digest("base64url");
  }

  #flush(): undefined {
    this.#hash.update(this.#pending, "utf16le");
    this.#pending = "";
    this.#room = SLICE_CHARACTERS;
  }
}
