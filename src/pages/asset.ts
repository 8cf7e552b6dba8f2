import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { createGunzip, gzip } from "node:zlib";
import type { Page } from "../transport/handler.ts";

type AssetOptions = {
  readonly file: URL;
  readonly contentType: string;
  readonly contentSecurityPolicy: string;
  /** The address changes with the content. */
  readonly immutable?: boolean;
  /** Changes the text of the file before it is served. */
  readonly fill?: (text: string) => string;
};

type Packed = {
  readonly gzipped: Buffer;
  /** Undefined where it is so large that it is unpacked for whoever wants it. */
  readonly plain: Buffer | undefined;
  readonly bytes: number;
  readonly etag: string;
};

/** Every page but the bundle of the reference. To unpack one costs more than everything else about it. */
const MOST_KEPT_BYTES = 1_048_576;

const gzipAsync = promisify(gzip);

/** A file as a page. Nothing is read before somebody asks; of a large one only the compressed form is kept. */
export function asset(options: AssetOptions): Page {
  let packed: Promise<Packed> | undefined;
  const load = () => {
    packed ??= pack(options).catch((error: unknown) => {
      packed = undefined;
      throw error;
    });
    return packed;
  };
  return async (request, anyResponse) => {
    const { gzipped, plain, bytes, etag } = await load();
    // The two kinds of response declare writeHead in ways that TypeScript cannot call through their union.
    const response = anyResponse as ServerResponse;
    const headers = { ...fixedHeaders(options), etag };
    if (request.headers["if-none-match"]?.includes(etag)) {
      response.writeHead(304, headers).end();
      return;
    }
    const compressed = acceptsGzip(request.headers["accept-encoding"]);
    response.writeHead(200, {
      ...headers,
      "content-type": options.contentType,
      "content-length": compressed ? gzipped.length : bytes,
      ...(compressed ? { "content-encoding": "gzip" } : {}),
    });
    if (request.method === "HEAD") response.end();
    else if (compressed || plain) response.end(compressed ? gzipped : plain);
    else await unpack(gzipped, response);
  };
}

async function pack({ file, fill }: AssetOptions): Promise<Packed> {
  const raw = await readFile(file);
  const content = fill ? Buffer.from(fill(raw.toString("utf8"))) : raw;
  // Weak: the compressed form and the other one share it.
  const etag = `W/"${hash("sha256", content, "base64url").slice(0, 22)}"`;
  const gzipped = await gzipAsync(content, { level: 9 });
  const plain = content.length <= MOST_KEPT_BYTES ? content : undefined;
  return { gzipped, plain, bytes: content.length, etag };
}

async function unpack(gzipped: Buffer, response: ServerResponse): Promise<void> {
  try {
    await pipeline([gzipped], createGunzip(), response);
  } catch (error) {
    // A reader who leaves early is no failure of ours.
    if (!response.destroyed) throw error;
  }
}

function fixedHeaders({ contentSecurityPolicy, immutable }: AssetOptions): Record<string, string> {
  return {
    "cache-control": immutable ? "public, max-age=31536000, immutable" : "no-cache",
    "content-security-policy": contentSecurityPolicy,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    vary: "accept-encoding",
  };
}

function acceptsGzip(accepted: string | string[] | undefined): boolean {
  return String(accepted ?? "")
    .toLowerCase()
    .split(",")
    .some((part) => /^\s*(gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$)[\d.]+\s*)?$/.test(part));
}
