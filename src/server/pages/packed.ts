import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { createGunzip, gzip } from "node:zlib";
import { varyWith } from "../cors.ts";
import { type HttpRequest, type HttpResponse, isClosed } from "../http.ts";

export type PageOptions = {
  readonly contentType: string;
  readonly contentSecurityPolicy: string;
  /** The request headers on which the content depends. */
  readonly vary?: string;
};

/** Content that is ready to send, compressed and uncompressed. */
export type Packed = {
  /** Undefined if the content is only sent uncompressed. */
  readonly gzipped: Buffer | undefined;
  /** Undefined for large content: it is decompressed for the few clients that need it. */
  readonly plain: Buffer | undefined;
  readonly bytes: number;
  readonly etag: string;
};

/** Every page is smaller except the bundle of the reference. */
const MAX_PLAIN_BYTES = 1_048_576;

const gzipAsync = promisify(gzip);

export async function pack(content: Buffer): Promise<Packed> {
  const gzipped = await gzipAsync(content, { level: 9 });
  return { ...uncompressed(content), gzipped, ...(content.length > MAX_PLAIN_BYTES && { plain: undefined }) };
}

export function uncompressed(content: Buffer): Packed {
  // Weak: the compressed form has the same tag.
  const etag = `W/"${hash("sha256", content, "base64url").slice(0, 22)}"`;
  return { gzipped: undefined, plain: content, bytes: content.length, etag };
}

/** Answers a GET or HEAD with the content. */
export async function sendPacked(
  request: HttpRequest,
  anyResponse: HttpResponse,
  { gzipped, plain, bytes, etag }: Packed,
  options: PageOptions,
): Promise<void> {
  // TypeScript cannot call writeHead on the union: the two response types declare it differently.
  const response = anyResponse as ServerResponse;
  const vary = varyWith(response, options.vary ?? "accept-encoding");
  const headers = { ...fixedHeaders(options), vary, etag };
  if (request.headers["if-none-match"]?.includes(etag)) {
    response.writeHead(304, headers).end();
    return;
  }
  const body = acceptsGzip(request.headers["accept-encoding"]) ? gzipped : undefined;
  response.writeHead(200, {
    ...headers,
    "content-type": options.contentType,
    "content-length": body?.length ?? bytes,
    ...(body ? { "content-encoding": "gzip" } : {}),
  });
  if (request.method === "HEAD") response.end();
  else if (body || plain) response.end(body ?? plain);
  else if (gzipped) await unpack(gzipped, response);
}

async function unpack(gzipped: Buffer, response: ServerResponse): Promise<void> {
  try {
    await pipeline([gzipped], createGunzip(), response);
  } catch (error) {
    // A client that disconnects early is not a failure of the server.
    if (!isClosed(response)) throw error;
  }
}

function acceptsGzip(accepted: string | string[] | undefined): boolean {
  return String(accepted ?? "")
    .toLowerCase()
    .split(",")
    .some((part) => /^\s*(gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$)[\d.]+\s*)?$/.test(part));
}

function fixedHeaders(options: PageOptions): Record<string, string> {
  return {
    "cache-control": "no-cache",
    "content-security-policy": options.contentSecurityPolicy,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
}
