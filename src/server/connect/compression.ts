import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { compress } from "../rest/compress.ts";

/** What RPCs may be compressed with. Brotli at its default would take a hundred times as long for a tenth less. */
export const acceptCompression: Compression[] = [
  compressionGzip,
  { ...compressionBrotli, compress: async (bytes) => new Uint8Array(await compress("br", bytes)) },
];

export function isKnownEncoding(name: string | null): boolean {
  return acceptCompression.some((known) => known.name === name);
}
