import type { FlatSchema } from "./flat-schema.ts";
import { textOfPattern } from "./pattern-text.ts";

const MAX_CHARACTERS = 10_000;

/** Texts of each format; the number makes them differ. */
const FORMATS: { readonly [format: string]: (variant: number) => string } = {
  "date-time": (variant) => `2026-01-${day(variant)}T12:00:00Z`,
  date: (variant) => `2026-01-${day(variant)}`,
  time: (variant) => `12:00:${day(variant)}Z`,
  duration: (variant) => `P${variant + 1}D`,
  email: (variant) => `user${variant}@example.com`,
  "idn-email": (variant) => `user${variant}@example.com`,
  hostname: (variant) => `host${variant}.example.com`,
  "idn-hostname": (variant) => `host${variant}.example.com`,
  ipv4: (variant) => `192.0.2.${1 + (variant % 250)}`,
  ipv6: (variant) => `2001:db8::${(1 + (variant % 65_000)).toString(16)}`,
  uri: (variant) => `https://example.com/${variant}`,
  "uri-reference": (variant) => `/${variant}`,
  iri: (variant) => `https://example.com/${variant}`,
  "iri-reference": (variant) => `/${variant}`,
  "uri-template": (variant) => `https://example.com/{id}/${variant}`,
  uuid: (variant) => `00000000-0000-4000-8000-${String(variant).padStart(12, "0")}`,
  "json-pointer": (variant) => `/${variant}`,
  "relative-json-pointer": (variant) => String(variant),
  regex: (variant) => `text${variant}`,
  byte: () => "dGV4dA==",
};

/** A text with the format, the pattern and the length of a schema. A format takes precedence over a pattern. */
export function textFor(schema: FlatSchema, variant: number): string {
  const { format, pattern } = schema;
  if (typeof format === "string" && Object.hasOwn(FORMATS, format)) return FORMATS[format]?.(variant) ?? "";
  const min = bounded(schema.minLength, 0);
  if (typeof pattern === "string") {
    const text = textOfPattern(pattern, { variant, repeats: 0 });
    return text.length >= min ? text : textOfPattern(pattern, { variant, repeats: min - text.length });
  }
  const text = variant === 0 ? "text" : `text ${variant}`;
  const max = bounded(schema.maxLength, MAX_CHARACTERS);
  if (text.length > max)
    return String(variant)
      .padStart(max, "t")
      .slice(-max || text.length);
  return text.padEnd(min, " text");
}

function bounded(length: unknown, otherwise: number): number {
  return typeof length === "number" ? Math.min(Math.max(0, length), MAX_CHARACTERS) : otherwise;
}

function day(variant: number): string {
  return String(1 + (variant % 28)).padStart(2, "0");
}
