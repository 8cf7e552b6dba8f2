import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { constants, crc32, deflateRaw, gzip } from "node:zlib";
import { varyWith } from "../http/cors.ts";
import type { HttpRequest, HttpResponse, ServePath } from "../http/message.ts";

export type PageOptions = {
  readonly contentType: string;
  readonly contentSecurityPolicy: string;
  /** The request headers on which the content depends. */
  readonly vary?: string;
  /** Default: clients ask each time whether the content is still current. */
  readonly cacheControl?: string;
};

/** Content that is ready to send, compressed and uncompressed. */
export type Packed = {
  readonly brotli?: Buffer;
  /** The parts; undefined if the content is only sent uncompressed. */
  readonly gzipped: readonly Buffer[] | undefined;
  /** Kept for all sizes: to decompress it for each client costs memory for each response that is not read. */
  readonly plain: readonly Buffer[];
  readonly bytes: number;
  readonly etag: string;
};

const gzipAsync = promisify(gzip);
const deflateAsync = promisify(deflateRaw);

export async function pack(content: Buffer): Promise<Packed> {
  const gzipped = [await gzipAsync(content, { level: 9 })];
  return { ...uncompressed(content), gzipped };
}

export function uncompressed(content: Buffer): Packed {
  return { gzipped: undefined, plain: [content], bytes: content.length, etag: etagOf(content) };
}

/** Weak: the compressed form has the same tag. */
function etagOf(content: Buffer | string): string {
  return `W/"${hash("sha256", content, "base64url").slice(0, 22)}"`;
}

/** A gzip header without a time, for the system "unknown". */
const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/**
 * Packs content of which only the end differs between clients. All responses share the start: they cost neither
 * time nor memory in proportion to its size, also if their clients do not read them.
 */
export async function packStart(text: string): Promise<(end: string) => Packed> {
  const start = Buffer.from(text);
  // A full flush ends with a whole byte, and without the last block.
  const deflated = await deflateAsync(start, { level: 9, finishFlush: constants.Z_FULL_FLUSH });
  const startTag = etagOf(start);
  const startSum = crc32(start);
  return (endText) => {
    const end = Buffer.from(endText);
    const bytes = start.length + end.length;
    return {
      plain: [start, end],
      gzipped: [GZIP_HEADER, deflated, lastBlock(end, { checksum: crc32(end, startSum), bytes })],
      bytes,
      etag: etagOf(startTag + endText),
    };
  };
}

/** The last block of a gzip file, uncompressed, with the sums of the file (RFC 1951, 3.2.4, and RFC 1952, 2.3.1). */
function lastBlock(content: Buffer, { checksum, bytes }: { checksum: number; bytes: number }): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(1);
  head.writeUInt16LE(content.length, 1);
  head.writeUInt16LE(0xffff - content.length, 3);
  const sums = Buffer.alloc(8);
  sums.writeUInt32LE(checksum);
  sums.writeUInt32LE(bytes, 4);
  return Buffer.concat([head, content, sums]);
}

/** Sends the content in response to a GET or HEAD. */
export function sendPacked(request: HttpRequest, anyResponse: HttpResponse, packed: Packed, options: PageOptions): void {
  // TypeScript cannot call writeHead on the union: the two response types declare it differently.
  const response = anyResponse as ServerResponse;
  const vary = varyWith(response, options.vary ?? "accept-encoding");
  const headers = { ...fixedHeaders(options), vary, etag: packed.etag };
  if (request.headers["if-none-match"]?.includes(packed.etag)) {
    response.writeHead(304, headers).end();
    return;
  }
  const compressed = compressedFor(request, packed);
  response.writeHead(200, {
    ...headers,
    "content-type": options.contentType,
    "content-length": compressed ? bytesOf(compressed.body) : packed.bytes,
    ...(compressed && { "content-encoding": compressed.encoding }),
  });
  const body = compressed?.body ?? packed.plain;
  if (request.method === "HEAD") response.end();
  else sendParts(body, response);
}

function sendParts(parts: readonly Buffer[], response: ServerResponse): void {
  for (const part of parts.slice(0, -1)) response.write(part);
  response.end(parts.at(-1));
}

function bytesOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

type Compressed = { readonly body: readonly Buffer[]; readonly encoding: "br" | "gzip" };

function compressedFor(request: HttpRequest, { brotli, gzipped }: Packed): Compressed | undefined {
  const accepted = request.headers["accept-encoding"];
  if (brotli && accepts("br", accepted)) return { body: [brotli], encoding: "br" };
  return gzipped && accepts("gzip", accepted) ? { body: gzipped, encoding: "gzip" } : undefined;
}

const ACCEPTED = /^\s*(br|gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$)[\d.]+\s*)?$/;

function accepts(encoding: string, accepted: string | string[] | undefined): boolean {
  const names = String(accepted ?? "")
    .toLowerCase()
    .split(",")
    .map((part) => ACCEPTED.exec(part)?.[1]);
  return names.includes(encoding) || names.includes("*");
}

function fixedHeaders(options: PageOptions): Record<string, string> {
  return {
    "cache-control": options.cacheControl ?? "no-cache",
    "content-security-policy": options.contentSecurityPolicy,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
}

type AssetOptions = PageOptions & {
  readonly load: () => Promise<Packed>;
};

/** Serves content that never changes as a page. It is read on the first request. */
export function asset({ load, ...options }: AssetOptions): ServePath {
  let packed: Promise<Packed> | undefined;
  const loadOnce = () => {
    packed ??= load().catch((error: unknown) => {
      packed = undefined;
      throw error;
    });
    return packed;
  };
  return async (request, response) => sendPacked(request, response, await loadOnce(), options);
}

export const HTML = "text/html; charset=utf-8";
export const CSS = "text/css; charset=utf-8";
export const JAVASCRIPT = "text/javascript; charset=utf-8";
export const TEXT = "text/plain; charset=utf-8";

/** The Content-Security-Policy of files that are no pages, and the start of all others. */
export const NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
