import type { ConnectError } from "@connectrpc/connect";
import { envelope } from "./envelope.ts";
import { HttpRpcResponse } from "./http-rpc-response.ts";

/** The last envelope of a response. */
export type LastFrame = { readonly flags: number; readonly content: Uint8Array };

/** A response whose body consists of envelopes: the last one contains the status and the trailers. */
export abstract class FramedResponse extends HttpRpcResponse {
  protected abstract lastFrame(error: ConnectError | undefined): LastFrame;

  sendOnly(message: Uint8Array, flags: number): void {
    const last = this.lastFrame(undefined);
    this.#sendHeaders();
    this.response.end(Buffer.concat([envelope(flags, message), envelope(last.flags, last.content)]));
  }

  sendMessage(message: Uint8Array, flags: number): boolean {
    this.#sendHeaders();
    return this.response.write(envelope(flags, message));
  }

  end(error?: ConnectError): void {
    if (this.isDone) return;
    const last = this.lastFrame(error);
    this.#sendHeaders();
    this.sendLast(last.content, (content, flags) => this.response.end(envelope(last.flags | flags, content)));
  }

  #sendHeaders(): void {
    if (!this.headersSent) this.response.writeHead(200, this.headers);
  }
}
