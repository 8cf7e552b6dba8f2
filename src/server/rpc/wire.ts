import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { compress } from "../compress.ts";
import type { Protocol } from "../incoming-call.ts";

/** The form of a request, from its content type. */
export type RpcForm = {
  readonly protocol: Exclude<Protocol, "rest">;
  readonly isJson: boolean;
  /** Whether messages are framed: in gRPC, gRPC-Web and streams of Connect. */
  readonly isEnveloped: boolean;
  /** The request header that names the compression of messages. */
  readonly encodingHeader: "grpc-encoding" | "connect-content-encoding" | "content-encoding";
};

/** One byte of flags, four of length. */
export const HEAD_BYTES = 5;

/** Frames a message for Connect streams, gRPC and gRPC-Web. */
export function envelope(flags: number, data: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(HEAD_BYTES + data.length);
  framed[0] = flags;
  framed.writeUInt32BE(data.length, 1);
  framed.set(data, HEAD_BYTES);
  return framed;
}

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

/** The status of a failed call, as headers or trailers of gRPC. */
export function grpcStatusOf(error: ConnectError): Record<string, string> {
  const headers = new Headers();
  setTrailerStatus(headers, error);
  encodeGrpcMessage(headers);
  return toNodeHeaders(headers);
}

export function toNodeHeaders(headers: Headers | undefined): Record<string, string> {
  return headers ? Object.fromEntries(headers) : {};
}

/** Connect escapes more than gRPC requires, and Google's client for Node unescapes only the required characters. */
export function encodeGrpcMessage(trailer: Headers): void {
  const message = trailer.get("grpc-message");
  if (message === null) return;
  const text = decodeURIComponent(message);
  trailer.set("grpc-message", text.replace(/[^\x20-\x7e]|%/gu, encodeURIComponent));
}
