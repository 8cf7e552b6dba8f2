import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { createRegistry, type DescMethod, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import * as details from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import type { Exchange, HeaderList } from "./exchange.ts";

/**
 * Values that differ between two equal calls: they are replaced by their kind, and must be present in both.
 *  - ids, secrets and times: each call creates its own;
 *  - the remaining calls and seconds of a rate window: a minute may begin between the two calls.
 * Everything else is compared: statuses, names and values of headers and trailers, their order within a name, frames,
 * flags, and the bytes of messages. The order of different header names has no meaning in HTTP.
 */
const VARIABLE: readonly [RegExp, string][] = [
  [/\b(acct|key|led|gen|chatcmpl|cmpl|msg|resp|rs|fc|call|toolu|item|embd)([_-])[0-9a-z]{26}/g, "$1$2ID"],
  [/\breq_[0-9a-z]{32}/g, "req_ID"],
  [/vx_live_[0-9A-Za-z]{32}/g, "SECRET"],
  [/vx_live_[0-9A-Za-z]{4}(…|%E2%80%A6)[0-9A-Za-z]{4}/g, "MASKED"],
  [/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"TIME"'],
  [/"(created|created_at|createdAt|completed_at|completedAt)":\s*"?\d{10}(?:\.\d+)?"?/g, '"$1":TIME'],
  [/"(next_page_token|nextPageToken)":\s*"[^"]+"/g, '"$1":"TOKEN"'],
];

const VARIABLE_HEADERS: ReadonlySet<string> = new Set([
  "date",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
  "ratelimit",
]);

const registry = createRegistry(...Object.values(details).filter((one) => isSchema(one)));

function isSchema(value: unknown): value is (typeof details)["ErrorInfoSchema"] {
  return (value as { kind?: unknown }).kind === "message";
}

/** The exchange in a form that is equal for equal behaviour, and that a person can read. */
export function comparable(method: DescMethod, { headers, trailers, body, ...rest }: Exchange): object {
  const value = (name: string) => headers.find(([key]) => key === name)?.[1];
  const type = value("content-type") ?? "";
  const encoding = value("grpc-encoding") ?? value("connect-content-encoding");
  const isFramed = /^application\/(grpc|connect)/.test(type);
  const isJson = /json/.test(type);
  const content = isFramed
    ? framesOf(body).map(({ flags, payload }) => ({
        flags,
        ...contentOf(method, payload, encodingOf(flags, encoding), isJson || flags > 1),
      }))
    : contentOf(method, body, value("content-encoding"), isJson || type !== "application/proto");
  return { ...rest, headers: headersOf(headers, body.length), trailers: headersOf(trailers, 0), content };
}

function encodingOf(flags: number, encoding: string | undefined): string | undefined {
  return (flags & 1) === 1 ? encoding : undefined;
}

function framesOf(body: Buffer): { flags: number; payload: Buffer }[] {
  const frames: { flags: number; payload: Buffer }[] = [];
  let at = 0;
  while (at + 5 <= body.length) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    frames.push({ flags: body[at] as number, payload: body.subarray(at + 5, end) });
    at = end;
  }
  // Bytes after the last frame.
  if (at !== body.length) frames.push({ flags: -1, payload: body.subarray(at) });
  return frames;
}

function contentOf(method: DescMethod, bytes: Buffer, encoding: string | undefined, isText: boolean): object {
  const plain = encoding === "gzip" ? gunzipSync(bytes) : encoding === "br" ? brotliDecompressSync(bytes) : bytes;
  if (isText) return { encoding, text: fixed(withReadableDetails(plain.toString("utf8"))) };
  try {
    const message = fromBinary(method.output, plain);
    const isCanonical = plain.equals(toBinary(method.output, message));
    return { encoding, isCanonical, message: fixed(toJsonString(method.output, message)) };
  } catch {
    return { encoding, hex: plain.toString("hex") };
  }
}

function headersOf(headers: HeaderList, bodyBytes: number): Record<string, string[]> {
  const all: Record<string, string[]> = {};
  for (const [name, value] of [...headers].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
    all[name] ??= [];
    if (VARIABLE_HEADERS.has(name)) all[name].push("VARIABLE");
    // Times and compressed ids differ in length.
    else if (name === "content-length" && Number(value) === bodyBytes) all[name].push("the length of the body");
    else all[name].push(name === "grpc-status-details-bin" ? statusOf(value) : fixed(value));
  }
  return all;
}

/** Base64 hides the ids in the details of errors. */
function statusOf(base64: string): string {
  try {
    const bytes = Buffer.from(base64, "base64");
    const status = fromBinary(StatusSchema, bytes);
    const isCanonical = bytes.toString("base64").replace(/=+$/, "") === base64.replace(/=+$/, "");
    const padding = base64.length - base64.replace(/=+$/, "").length;
    return `${isCanonical} ${padding} ${fixed(toJsonString(StatusSchema, status, { registry }))}`;
  } catch {
    return base64;
  }
}

function withReadableDetails(text: string): string {
  return text.replace(/(?<=grpc-status-details-bin: )[\w+/=-]+/, statusOf);
}

function fixed(text: string): string {
  return VARIABLE.reduce((changed, [pattern, kind]) => changed.replace(pattern, kind), text);
}

/** The paths at which two values differ, with both values. */
export function differencesOf(a: unknown, b: unknown, path = ""): string[] {
  if (Object.is(a, b)) return [];
  if (typeof a === "string" && typeof b === "string") return [`${path}: ${excerpts(a, b)}`];
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return [`${path}: ${shown(a)} and ${shown(b)}`];
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].flatMap((name) =>
    differencesOf((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name], `${path}/${name}`),
  );
}

/** Both texts from shortly before the first difference on. */
function excerpts(a: string, b: string): string {
  let at = 0;
  while (a[at] === b[at]) at++;
  const start = Math.max(0, at - 60);
  return `${shown(a.slice(start))} and ${shown(b.slice(start))}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
