import type { Steps } from "../steps.ts";

/** Characters decoded at once: a few milliseconds of work, and whole groups of four. */
const PART_CHARACTERS = 1_048_576;

const STANDARD = /^[A-Za-z0-9+/]*$/;
const URL_SAFE = /^[\w-]*$/;

/** Decodes standard or URL-safe base64, padded or not, in parts; undefined if it is neither. */
export function* base64Bytes(text: string): Steps<Uint8Array<ArrayBuffer> | undefined> {
  const end = text.length - paddingOf(text);
  if (end % 4 === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((end * 3) / 4));
  const target = Buffer.from(bytes.buffer);
  let isStandard = true;
  let isUrlSafe = true;
  for (let at = 0; at < end; at += PART_CHARACTERS) {
    if (at > 0) yield;
    const part = text.slice(at, Math.min(at + PART_CHARACTERS, end));
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

/** The maximum length of base64 for that many bytes. */
export function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

function paddingOf(text: string): number {
  if (text.endsWith("==")) return 2;
  return text.endsWith("=") ? 1 : 0;
}
