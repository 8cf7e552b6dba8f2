import type { ServerResponse } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import type { HttpRequest, HttpResponse } from "../http.ts";
import { COMPRESSED, RpcResponse, type RpcResponseOptions } from "../rpc/rpc-response.ts";
import { stopBody } from "../stop-body.ts";

/** The response to a unary call over Connect: an ordinary HTTP response. */
export class ConnectUnaryResponse extends RpcResponse {
  readonly #request: HttpRequest;
  readonly #response: ServerResponse;
  #isEnding = false;

  constructor(request: HttpRequest, response: HttpResponse, options: RpcResponseOptions) {
    super(response, options);
    this.#request = request;
    // TypeScript cannot call the methods of the union: the two response types declare them differently.
    this.#response = response as ServerResponse;
  }

  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  override get isDone(): boolean {
    return this.#isEnding || super.isDone;
  }

  sendOnly(message: Uint8Array, flags: number): void {
    this.#send(200, message, flags);
  }

  end(error: ConnectError): void {
    if (this.isDone) return;
    stopBody(this.#request, this.#response);
    this.headers["content-type"] = "application/json";
    const status = codeToHttpStatus(error.code);
    const body = errorToJsonBytes(error, undefined);
    const compressed = this.compress(body);
    if (!compressed) this.#send(status, body, 0);
    else {
      this.#isEnding = true;
      compressed.then(
        (bytes) => this.#send(status, bytes, COMPRESSED),
        () => this.#response.destroy(),
      );
    }
  }

  sendMessage(): never {
    throw new Error("a unary call has one message");
  }

  #send(status: number, body: Uint8Array, flags: number): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    const { headers } = this;
    if (flags === COMPRESSED && this.compression) headers["content-encoding"] = this.compression.name;
    headers["content-length"] = String(body.length);
    for (const [name, value] of Object.entries(this.trailers ?? {})) headers[`trailer-${name}`] = value;
    this.#response.writeHead(status, headers);
    this.#response.end(body);
  }
}
