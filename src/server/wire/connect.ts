import type { ServerResponse } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
  parseTimeout,
} from "@connectrpc/connect/protocol-connect";
import { type HttpRequest, stopBody } from "../http/message.ts";
import { COMPRESSED, type LastFrame, RpcCall, type RpcFormats, withEncodings } from "./rpc.ts";

const UNARY = {
  protocol: "connect",
  isEnveloped: false,
  encodingHeader: "content-encoding",
  acceptHeader: "accept-encoding",
  timeoutHeader: "connect-timeout-ms",
  parseTimeout,
} as const;

export const connectUnary: RpcFormats = withEncodings(UNARY, "application/");

/** FramedCall serves the calls. */
export const connectStream: RpcFormats = withEncodings(
  {
    ...UNARY,
    isEnveloped: true,
    encodingHeader: "connect-content-encoding",
    acceptHeader: "connect-accept-encoding",
    lastFrame: endOfStream,
  },
  "application/connect+",
);

const END_OF_STREAM: LastFrame = { flags: endStreamFlag, content: Buffer.from("{}") };

function endOfStream(error: ConnectError | undefined, trailers: Record<string, string> | undefined): LastFrame {
  if (!error && !trailers) return END_OF_STREAM;
  const end = endStreamToJson(new Headers(trailers), error, undefined);
  return { flags: endStreamFlag, content: Buffer.from(JSON.stringify(end)) };
}

/** A unary call over Connect: an ordinary HTTP request and response. */
export class ConnectUnaryCall extends RpcCall<ServerResponse, HttpRequest> {
  protected sendOnly(message: Uint8Array, flags: number): void {
    this.#send(200, message, flags);
  }

  protected sendHeaders(): void {
    this.#writeHead(200);
  }

  protected sendMessage(): never {
    throw new Error("a unary call is no stream");
  }

  protected end(error?: ConnectError): void {
    if (this.isDone) return;
    if (!error) {
      this.response.end();
      return;
    }
    this.responseHeaders["content-type"] = "application/json";
    const status = codeToHttpStatus(error.code);
    stopBody(this.request, this.response);
    this.sendLast(errorToJsonBytes(error, undefined), (body, flags) => this.#send(status, body, flags));
  }

  protected reset(): void {
    this.response.destroy();
  }

  #send(status: number, body: Uint8Array, flags: number): void {
    const { responseHeaders: headers, compression } = this;
    if (flags === COMPRESSED && compression) headers["content-encoding"] = compression.name;
    headers["content-length"] = String(body.length);
    this.#writeHead(status);
    this.response.end(body);
  }

  #writeHead(status: number): void {
    const { responseHeaders: headers, trailers = {} } = this;
    for (const [name, value] of Object.entries(trailers)) headers[`trailer-${name}`] = value;
    this.response.writeHead(status, headers);
  }
}
