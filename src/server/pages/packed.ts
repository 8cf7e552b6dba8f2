import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { varyWith } from "../http/cors.ts";
import type { HttpRequest, HttpResponse, ServePath } from "../http/message.ts";
import { chooseEncoding, type Encoding } from "../wire/compress.ts";

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
  readonly gzipped?: Buffer;
  /** Kept for all sizes: to decompress it for each client costs memory for each response that is not read. */
  readonly plain: Buffer;
  readonly etag: string;
};

const gzipAsync = promisify(gzip);

export async function pack(content: Buffer): Promise<Packed> {
  return { ...uncompressed(content), gzipped: await gzipAsync(content, { level: 9 }) };
}

export function uncompressed(content: Buffer): Packed {
  // Weak: the compressed form has the same tag.
  return { plain: content, etag: `W/"${hash("sha256", content, "base64url").slice(0, 22)}"` };
}

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
  const body = compressed?.body ?? packed.plain;
  response.writeHead(200, {
    ...headers,
    "content-type": options.contentType,
    "content-length": body.length,
    ...(compressed && { "content-encoding": compressed.encoding }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

type Compressed = { readonly body: Buffer; readonly encoding: Encoding };

function compressedFor({ headers }: HttpRequest, { brotli, gzipped }: Packed): Compressed | undefined {
  const bodies = { ...(brotli && { br: brotli }), ...(gzipped && { gzip: gzipped }) };
  const accepted = headers["accept-encoding"];
  const encoding = chooseEncoding(accepted === undefined ? [] : [String(accepted)], Object.keys(bodies) as Encoding[]);
  const body = encoding && bodies[encoding];
  return body && { body, encoding };
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
