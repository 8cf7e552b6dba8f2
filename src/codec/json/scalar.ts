import { type DescEnum, type DescField, ScalarType } from "@bufbuild/protobuf";
import { paddingOf } from "../../domain/base64.ts";
import { finish, type Steps } from "../steps.ts";

/** Parses the text of a scalar or an enum value; throws an Error whose message states what it must be. */
type ScalarParser = (text: string) => unknown;

const INTEGER = /^-?\d{1,20}$/;
// No digit can match two parts of it, so text of any length is refused in one pass.
const DECIMAL = /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

const RANGES: Partial<Record<ScalarType, readonly [min: bigint, max: bigint]>> = {
  [ScalarType.INT32]: [-(2n ** 31n), 2n ** 31n - 1n],
  [ScalarType.SINT32]: [-(2n ** 31n), 2n ** 31n - 1n],
  [ScalarType.SFIXED32]: [-(2n ** 31n), 2n ** 31n - 1n],
  [ScalarType.UINT32]: [0n, 2n ** 32n - 1n],
  [ScalarType.FIXED32]: [0n, 2n ** 32n - 1n],
  [ScalarType.INT64]: [-(2n ** 63n), 2n ** 63n - 1n],
  [ScalarType.SINT64]: [-(2n ** 63n), 2n ** 63n - 1n],
  [ScalarType.SFIXED64]: [-(2n ** 63n), 2n ** 63n - 1n],
  [ScalarType.UINT64]: [0n, 2n ** 64n - 1n],
  [ScalarType.FIXED64]: [0n, 2n ** 64n - 1n],
};

const MAX_FLOAT32 = 3.4028234663852886e38;

export function isNumeric(type: ScalarType): boolean {
  return type === ScalarType.FLOAT || type === ScalarType.DOUBLE || type in RANGES;
}

export function parseScalar(type: ScalarType, text: string): unknown {
  switch (type) {
    case ScalarType.STRING:
      return text;
    case ScalarType.BOOL:
      if (text === "true" || text === "false") return text === "true";
      throw new Error("must be true or false");
    case ScalarType.BYTES:
      return parseBytes(text);
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return parseFloating(text, type === ScalarType.FLOAT ? MAX_FLOAT32 : Number.MAX_VALUE);
    default:
      return parseInteger(type, text);
  }
}

export function parseEnum(desc: DescEnum, text: string): number {
  const number = findEnumNumber(desc, text);
  if (number === undefined) throw new Error(`must be one of ${desc.values.map(({ name }) => name).join(", ")}`);
  return number;
}

/** By name or by number; undefined if the enum has no such value. */
export function findEnumNumber(desc: DescEnum, text: string): number | undefined {
  if (/^-?\d{1,10}$/.test(text)) {
    const number = Number(text);
    if (desc.open || desc.value[number]) return Number(parseInteger(ScalarType.INT32, text));
  }
  return desc.values.find(({ name }) => name === text)?.number;
}

export function scalarParser(field: DescField): ScalarParser | undefined {
  if (field.enum) return (text) => parseEnum(field.enum as DescEnum, text);
  if (field.scalar !== undefined) return (text) => parseScalar(field.scalar as ScalarType, text);
  return undefined;
}

function parseInteger(type: ScalarType, text: string): number | bigint {
  const [min, max] = RANGES[type] as readonly [bigint, bigint];
  const value = INTEGER.test(text) ? BigInt(text) : wholeNumber(text);
  if (value === undefined) throw new Error("must be a whole number");
  if (value < min || value > max) throw new Error(`must be from ${min} to ${max}`);
  return max > 2n ** 32n ? value : Number(value);
}

/** 1e3 and 1.0 are whole numbers too. */
function wholeNumber(text: string): bigint | undefined {
  if (!DECIMAL.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

function parseFloating(text: string, max: number): number {
  if (text === "NaN" || text === "Infinity" || text === "-Infinity") return Number(text);
  if (!DECIMAL.test(text)) throw new Error("must be a number");
  const value = Number(text);
  if (Math.abs(value) > max) throw new Error("is too large a number");
  return value;
}

function parseBytes(text: string): Uint8Array {
  const bytes = finish(base64Bytes(Buffer.from(text)));
  if (bytes === undefined) throw new Error("must be base64");
  return bytes;
}

/** Characters decoded at once, in whole groups of four. The texts of larger parts would need new memory. */
const PART_CHARACTERS = 65_536;
/** Characters decoded before other calls may run: a few milliseconds of work. */
const STEP_CHARACTERS = 16 * PART_CHARACTERS;

const STANDARD = /^[A-Za-z0-9+/]*$/;
const URL_SAFE = /^[\w-]*$/;

/** Decodes the text of standard or URL-safe base64, padded or not, in parts; undefined if it is neither. */
export function* base64Bytes(text: Buffer): Steps<Uint8Array<ArrayBuffer> | undefined> {
  const end = text.length - paddingOf(text.toString("latin1", Math.max(text.length - 2, 0)));
  if (end % 4 === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((end * 3) / 4));
  const target = Buffer.from(bytes.buffer);
  let isStandard = true;
  let isUrlSafe = true;
  for (let at = 0; at < end; at += PART_CHARACTERS) {
    if (at > 0 && at % STEP_CHARACTERS === 0) yield;
    const part = text.toString("latin1", at, Math.min(at + PART_CHARACTERS, end));
    const start = (at / 4) * 3;
    const size = target.write(part, start, "base64");
    // Encoding a part again takes less time than the patterns. Its end can have padding.
    const encoded = isStandard ? target.toString("base64", start, start + size) : "";
    if (encoded.startsWith(part) && !part.endsWith("=")) {
      isUrlSafe &&= !part.includes("+") && !part.includes("/");
      continue;
    }
    isStandard &&= STANDARD.test(part);
    isUrlSafe &&= URL_SAFE.test(part);
    if (!isStandard && !isUrlSafe) return undefined;
  }
  return bytes;
}
