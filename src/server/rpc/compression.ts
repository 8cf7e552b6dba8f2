import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { compress } from "../compress.ts";

/**
 * The compressions of RPCs. Brotli's default quality takes a hundred times as long and saves only a tenth
 * more.
 */
export const acceptCompression: Compression[] = [
  compressionGzip,
  { ...compressionBrotli, compress: async (bytes) => new Uint8Array(await compress("br", bytes)) },
];

/** Whether requests in this encoding can be read; undefined is a request without compression. */
export function isKnownEncoding(name: string | string[] | undefined): boolean {
  return name === undefined || name === "identity" || acceptCompression.some((known) => known.name === name);
}
