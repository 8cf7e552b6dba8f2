import { constants, type ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { parseTimeout, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { envelope, RpcCall, type RpcFormats, withEncodings } from "./rpc.ts";

/** The protocol; also that of gRPC-Web, but for the trailers. */
export const GRPC = {
  protocol: "grpc",
  isEnveloped: true,
  encodingHeader: "grpc-encoding",
  acceptHeader: "grpc-accept-encoding",
  timeoutHeader: "grpc-timeout",
  parseTimeout,
} as const;

export const grpc: RpcFormats = withEncodings(GRPC, "application/grpc+");

const OK_STATUS = { "grpc-status": "0" };

/** A call over gRPC, on an HTTP/2 stream: messages in envelopes, the status in the trailers. */
export class GrpcCall extends RpcCall<ServerHttp2Stream> {
  #status: Record<string, string> = OK_STATUS;

  protected sendOnly(message: Uint8Array, flags: number): void {
    this.sendHeaders();
    this.response.end(envelope(flags, message));
  }

  protected sendMessage(message: Uint8Array, flags: number): boolean {
    this.sendHeaders();
    return this.response.write(envelope(flags, message));
  }

  protected end(error?: ConnectError): void {
    if (this.isDone) return;
    if (error) this.#status = grpcStatusOf(error);
    this.sendHeaders();
    this.response.end();
  }

  protected reset(): void {
    this.response.close(constants.NGHTTP2_CANCEL);
  }

  protected sendHeaders(): void {
    if (this.response.headersSent) return;
    this.response.once("wantTrailers", () => this.#sendTrailers());
    this.response.respond(this.responseHeaders, { waitForTrailers: true });
  }

  #sendTrailers(): void {
    this.response.sendTrailers(this.trailers ? { ...this.trailers, ...this.#status } : this.#status);
    // Node sends the trailers in an immediate. The caller may still be sending a body that is no longer read.
    if (this.response.isPaused()) setImmediate(() => this.response.close(constants.NGHTTP2_NO_ERROR));
  }
}

/** The status of a failed call, as headers or trailers of gRPC. */
export function grpcStatusOf(error: ConnectError): Record<string, string> {
  const headers = new Headers();
  setTrailerStatus(headers, error);
  encodeGrpcMessage(headers);
  return Object.fromEntries(headers);
}

/** Connect escapes more than gRPC requires, and Google's client for Node unescapes only the required characters. */
export function encodeGrpcMessage(trailer: Headers): void {
  const message = trailer.get("grpc-message");
  if (message === null) return;
  const text = decodeURIComponent(message);
  trailer.set("grpc-message", text.replace(/[^\x20-\x7e]|%/gu, encodeURIComponent));
}
