import { constants, type ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { envelope } from "../rpc/envelope.ts";
import { RpcResponse, type RpcResponseOptions } from "../rpc/rpc-response.ts";
import { grpcStatusOf } from "./grpc-status.ts";

const OK = { "grpc-status": "0" };

/** The response to a call over gRPC, on an HTTP/2 stream: messages in envelopes, the status in the trailers. */
export class GrpcResponse extends RpcResponse {
  readonly #stream: ServerHttp2Stream;
  #status: Record<string, string> = OK;

  constructor(stream: ServerHttp2Stream, options: RpcResponseOptions) {
    super(stream, options);
    this.#stream = stream;
  }

  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  sendOnly(message: Uint8Array, flags: number): void {
    this.#sendHeaders();
    this.#stream.end(envelope(flags, message));
  }

  sendMessage(message: Uint8Array, flags: number): boolean {
    this.#sendHeaders();
    return this.#stream.write(envelope(flags, message));
  }

  end(error?: ConnectError): void {
    if (this.isDone) return;
    if (error) this.#status = grpcStatusOf(error);
    this.#sendHeaders();
    this.#stream.end();
  }

  protected reset(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #sendHeaders(): void {
    if (this.#stream.headersSent) return;
    this.#stream.once("wantTrailers", () => this.#sendTrailers());
    this.#stream.respond(this.headers, { waitForTrailers: true });
  }

  #sendTrailers(): void {
    this.#stream.sendTrailers(this.trailers ? { ...this.trailers, ...this.#status } : this.#status);
    // Node sends the trailers in an immediate. The caller may still be sending a body that is not read any more.
    if (this.#stream.isPaused()) setImmediate(() => this.#stream.close(constants.NGHTTP2_NO_ERROR));
  }
}
