import type { ServerResponse } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import type { HttpRequest, HttpResponse } from "../http.ts";
import { stopBody } from "../stop-body.ts";
import { envelope } from "./envelope.ts";
import { COMPRESSED, RpcResponse, type RpcResponseOptions } from "./rpc-response.ts";

/** The last envelope of a response. */
export type LastFrame = { readonly flags: number; readonly content: Uint8Array };

/** A response with envelopes as its body: the last one contains the status. */
export abstract class FramedResponse extends RpcResponse {
  readonly #request: HttpRequest;
  readonly #response: ServerResponse;
  /** While the last envelope is being compressed, the response is complete but not ended. */
  #isEnding = false;

  constructor(request: HttpRequest, response: HttpResponse, options: RpcResponseOptions) {
    super(response, options);
    this.#request = request;
    // TypeScript cannot call the methods of the union: the two response types declare them differently.
    this.#response = response as ServerResponse;
  }

  protected abstract lastFrame(error: ConnectError | undefined): LastFrame;

  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  override get isDone(): boolean {
    return this.#isEnding || super.isDone;
  }

  sendOnly(message: Uint8Array, flags: number): void {
    if (this.isDone) return;
    const last = this.lastFrame(undefined);
    this.#sendHeaders();
    this.#response.end(Buffer.concat([envelope(flags, message), envelope(last.flags, last.content)]));
  }

  sendMessage(message: Uint8Array, flags: number): boolean {
    this.#sendHeaders();
    return this.#response.write(envelope(flags, message));
  }

  end(error?: ConnectError): void {
    if (this.isDone) return;
    if (error) stopBody(this.#request, this.#response);
    const { flags, content } = this.lastFrame(error);
    const compressed = this.compress(content);
    this.#sendHeaders();
    if (!compressed) this.#response.end(envelope(flags, content));
    else {
      this.#isEnding = true;
      compressed.then(
        (bytes) => this.#response.end(envelope(flags | COMPRESSED, bytes)),
        () => this.#response.destroy(),
      );
    }
  }

  #sendHeaders(): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, this.headers);
  }
}
