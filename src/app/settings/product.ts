import { resolve } from "node:path";
import { sniffedType } from "../../domain/image.ts";
import { readBytes } from "../../domain/read-bytes.ts";
import type { Logo } from "../../server/pages/site-header.ts";
import { ConfigError } from "../start-error.ts";

export const MAX_NAME_CHARACTERS = 60;
const MAX_URL_CHARACTERS = 2_000;
const MAX_LOGO_BYTES = 262_144;

export function nameProblem(name: string): string | undefined {
  if (/\p{Cc}/u.test(name)) return "must not contain control characters";
  if (name.trim() === "") return "must not be blank";
  const { length } = [...name];
  if (length > MAX_NAME_CHARACTERS) return `must have at most ${MAX_NAME_CHARACTERS} characters, not ${length}`;
  return undefined;
}

/** The problem of a URL that the pages and responses show; undefined if it is valid. */
export function linkProblem(url: string): string | undefined {
  const isAllowed = url.length <= MAX_URL_CHARACTERS && /^(https?:\/\/|mailto:)[!-~]+$/i.test(url);
  if (isAllowed && URL.canParse(url)) return undefined;
  return `must be an https, http or mailto URL of at most ${MAX_URL_CHARACTERS} characters, not ${JSON.stringify(url.slice(0, 100))}`;
}

/** The image file. Throws ConfigError if it cannot be used as a logo. */
export function readLogo(setting: string, path: string | undefined): Logo | undefined {
  if (path === undefined) return undefined;
  const absolute = resolve(path);
  const bytes = readBytes(absolute, MAX_LOGO_BYTES, (problem) => new ConfigError(`${setting}: ${problem}`));
  if (bytes.length > MAX_LOGO_BYTES) throw new ConfigError(`${setting}: ${absolute} is larger than ${MAX_LOGO_BYTES} bytes`);
  const contentType = sniffedType(bytes) ?? (isSvg(bytes) ? "image/svg+xml" : undefined);
  if (contentType === undefined) throw new ConfigError(`${setting}: ${absolute} must be an SVG, PNG, JPEG, GIF or WebP image`);
  return { bytes, contentType };
}

/** An svg element, which an XML declaration, comments and a document type may precede. */
function isSvg(bytes: Buffer): boolean {
  const text = bytes.toString("utf8").replace(/<!--.*?-->|<\?.*?\?>|<!doctype.*?>/gis, "");
  return /^[\s\ufeff]*<svg[\s>]/.test(text);
}
