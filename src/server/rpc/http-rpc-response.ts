import type { ServerResponse } from "node:http";
import type { HttpRequest, HttpResponse } from "../http.ts";
import { stopBody } from "../stop-body.ts";
import { COMPRESSED, RpcResponse, type RpcResponseOptions } from "./rpc-response.ts";

/** The response to an RPC on a response object, over HTTP/1.1 or HTTP/2. */
export abstract class HttpRpcResponse extends RpcResponse {
  // TypeScript cannot call the methods of the union: the two response types declare them differently.
  protected readonly response: ServerResponse;
  readonly #request: HttpRequest;
  /** The last part is being compressed: nothing else may be sent. */
  #isEnding = false;

  constructor(request: HttpRequest, response: HttpResponse, options: RpcResponseOptions) {
    super(response, options);
    this.#request = request;
    this.response = response as ServerResponse;
  }

  get headersSent(): boolean {
    return this.response.headersSent;
  }

  override get isDone(): boolean {
    return this.#isEnding || super.isDone;
  }

  protected reset(): void {
    this.response.destroy();
  }

  /** Sends the last part of the response, which may contain an error. */
  protected sendLast(content: Uint8Array, send: (content: Uint8Array, flags: number) => void): void {
    stopBody(this.#request, this.response);
    const compressing = this.compress(content);
    if (compressing === undefined) {
      send(content, 0);
      return;
    }
    this.#isEnding = true;
    compressing.then((compressed) => send(compressed, COMPRESSED)).catch(() => this.response.destroy());
  }
}
