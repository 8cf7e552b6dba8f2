import type { ServerResponse } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { type HttpRequest, stopBody } from "../http/message.ts";
import { envelope, type LastFrame, RpcCall } from "./rpc.ts";

/** A call over gRPC-Web, or a stream over Connect: the last of the envelopes contains the status and the trailers. */
export class FramedCall extends RpcCall<ServerResponse, HttpRequest> {
  override startStream(): void {
    super.startStream();
    this.response.flushHeaders();
  }

  protected sendOnly(message: Uint8Array, flags: number): void {
    const last = this.#lastFrame(undefined);
    this.sendHeaders();
    this.response.end(Buffer.concat([envelope(flags, message), envelope(last.flags, last.content)]));
  }

  protected sendMessage(message: Uint8Array, flags: number): boolean {
    this.sendHeaders();
    return this.response.write(envelope(flags, message));
  }

  protected end(error?: ConnectError): void {
    if (this.isDone) return;
    const last = this.#lastFrame(error);
    this.sendHeaders();
    stopBody(this.request, this.response);
    this.sendLast(last.content, (content, flags) => this.response.end(envelope(last.flags | flags, content)));
  }

  protected reset(): void {
    this.response.destroy();
  }

  #lastFrame(error: ConnectError | undefined): LastFrame {
    const { lastFrame } = this.format;
    if (!lastFrame) throw new Error(`${this.format.contentType} has no last envelope`);
    return lastFrame(error, this.trailers);
  }

  protected sendHeaders(): void {
    if (this.headersSent) return;
    this.response.writeHead(200, this.responseHeaders);
  }
}
