import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { HttpRpcResponse } from "../rpc/http-rpc-response.ts";
import { COMPRESSED } from "../rpc/rpc-response.ts";

/** The response to a unary call over Connect: an ordinary HTTP response. */
export class ConnectUnaryResponse extends HttpRpcResponse {
  sendOnly(message: Uint8Array, flags: number): void {
    this.#send(200, message, flags);
  }

  sendMessage(): never {
    throw new Error("the response to a unary call is sent whole");
  }

  end(error: ConnectError): void {
    if (this.isDone) return;
    this.headers["content-type"] = "application/json";
    const status = codeToHttpStatus(error.code);
    this.sendLast(errorToJsonBytes(error, undefined), (body, flags) => this.#send(status, body, flags));
  }

  #send(status: number, body: Uint8Array, flags: number): void {
    const { headers, compression, trailers = {} } = this;
    if (flags === COMPRESSED && compression) headers["content-encoding"] = compression.name;
    headers["content-length"] = String(body.length);
    for (const [name, value] of Object.entries(trailers)) headers[`trailer-${name}`] = value;
    this.response.writeHead(status, headers);
    this.response.end(body);
  }
}
