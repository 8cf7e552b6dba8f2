import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { compress } from "../rest/compress.ts";

/**
 * The compressions of RPCs. Brotli's default quality takes a hundred times as long and saves only a tenth
 * more.
 */
export const acceptCompression: Compression[] = [
  compressionGzip,
  { ...compressionBrotli, compress: async (bytes) => new Uint8Array(await compress("br", bytes)) },
];

export function isKnownEncoding(name: string | null): boolean {
  return acceptCompression.some((known) => known.name === name);
}
