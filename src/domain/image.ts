import { isIP } from "node:net";
import { BASE64_SLICE, isBase64Slice, paddingOf } from "./base64.ts";
import { DomainError } from "./errors.ts";
import { nextTurn } from "./fairness.ts";
import { isPublicAddress } from "./network.ts";
import { IMAGE_TYPES, type Image, type ImageType } from "./prompt.ts";

export const MAX_IMAGE_BYTES = 20_971_520;
const MAX_URL_CHARACTERS = 8_192;

const DATA_URL = /^data:([^;,]{1,100});base64,/i;

/** The image of a URL with the scheme http, https or data. The server does not fetch it here. */
export function imageOfUrl(text: string, field: string): Image {
  if (/^data:/i.test(text)) return imageOfDataUrl(text, field);
  if (text.length > MAX_URL_CHARACTERS) {
    throw DomainError.ofField(field, `must be at most ${MAX_URL_CHARACTERS} characters`);
  }
  if (!URL.canParse(text)) throw DomainError.ofField(field, "must be a URL");
  const { protocol, username, password, hostname } = new URL(text);
  if (protocol !== "https:" && protocol !== "http:") {
    throw DomainError.ofField(field, "must be an https, http or data URL");
  }
  if (username !== "" || password !== "") throw DomainError.ofField(field, "must not contain credentials");
  if (isPrivateHost(hostname)) {
    throw DomainError.ofField(field, `must have a public host, and "${hostname}" is not one`);
  }
  return { kind: "url", url: text };
}

function imageOfDataUrl(text: string, field: string): Image {
  const [head, mediaType] = DATA_URL.exec(text.slice(0, 200)) ?? [];
  if (head === undefined || mediaType === undefined) {
    throw DomainError.ofField(field, 'must have the form "data:image/png;base64,…"');
  }
  return imageOfBase64(mediaType, text.slice(head.length), field);
}

/** Checks the type and the size. `checkBase64` checks every character, once per request, in slices. */
export function imageOfBase64(mediaType: string, base64: string, field: string): Image {
  const type = imageTypeOf(mediaType, field);
  if ((base64.length / 4) * 3 - paddingOf(base64) > MAX_IMAGE_BYTES) throw tooLarge(field);
  const head = base64.slice(0, 16);
  if (base64.length % 4 !== 0 || !BASE64.test(head)) throw DomainError.ofField(field, NOT_BASE64);
  refuseOtherType(Buffer.from(head, "base64"), type, field);
  return { kind: "data", mediaType: type, data: base64 };
}

/** An empty media type stands for that of the bytes. */
export function imageOfBytes(mediaType: string, bytes: Uint8Array, field: string): Image {
  if (bytes.length > MAX_IMAGE_BYTES) throw tooLarge(field);
  const head = Buffer.from(bytes.subarray(0, 12));
  const type = mediaType === "" ? sniffedType(head) : imageTypeOf(mediaType, field);
  if (type === undefined) throw DomainError.ofField(field, `must be the bytes of an image: ${TYPES}`);
  refuseOtherType(head, type, field);
  return { kind: "data", mediaType: type, data: bytes };
}

const TYPES = IMAGE_TYPES.join(", ");
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const NOT_BASE64 = "must be base64 with padding and without other characters";

export async function checkBase64(base64: string, field: string): Promise<void> {
  for (let at = 0; at < base64.length; at += BASE64_SLICE) {
    await nextTurn();
    // A decoder reads only the low byte of characters outside ASCII.
    const slice = base64.slice(at, at + BASE64_SLICE);
    if (Buffer.byteLength(slice) > slice.length || !isBase64Slice(base64, at)) throw DomainError.ofField(field, NOT_BASE64);
  }
}

/** Some clients write image/jpg for image/jpeg. */
function imageTypeOf(mediaType: string, field: string): ImageType {
  const name = mediaType.toLowerCase().replace(/^image\/jpg$/, "image/jpeg");
  const type = IMAGE_TYPES.find((known) => known === name);
  if (type === undefined) throw DomainError.ofField(field, `must have one of the media types ${TYPES}`);
  return type;
}

function refuseOtherType(head: Buffer, declared: ImageType, field: string): void {
  const type = sniffedType(head);
  if (type === declared) return;
  const found = type === undefined ? "not those of an image" : `those of ${type}`;
  throw DomainError.ofField(field, `has the media type ${declared}, but its bytes are ${found}`);
}

/** The type by the first 12 bytes. */
export function sniffedType(head: Buffer): ImageType | undefined {
  const text = head.toString("latin1");
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (text.startsWith("GIF87a") || text.startsWith("GIF89a")) return "image/gif";
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WEBP") return "image/webp";
  return undefined;
}

function tooLarge(field: string): DomainError {
  return DomainError.ofField(field, `must be an image of at most ${MAX_IMAGE_BYTES} bytes`);
}

/** The last labels of names that resolve inside a network, such as those of metadata services. */
const PRIVATE_LABELS = ["localhost", "local", "internal"];

/**
 * Whether a host, in the form of `URL.hostname`, is evidently inside a network. Names are not resolved. A name with an
 * empty label is not a public name, and resolvers handle it differently.
 */
function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$|\.$/g, "");
  if (isIP(host) !== 0) return !isPublicAddress(host);
  const labels = host.split(".");
  return labels.length === 1 || labels.includes("") || PRIVATE_LABELS.includes(labels.at(-1) ?? "");
}
