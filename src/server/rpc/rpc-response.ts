import type { ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { type Compression, compressionNegotiate } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { DomainError } from "../../domain/errors.ts";
import { CallResponse, type Channel } from "../call-response.ts";
import { toConnectError } from "../errors/connect-error.ts";
import { setErrorHeaders } from "../errors/refusal.ts";
import {
  type HttpRequest,
  type HttpResponse,
  isClosed,
  type RequestHead,
  stopBody,
  untilWritable,
} from "../http/message.ts";
import type { DirectForm } from "./direct-form.ts";
import { acceptCompression, envelope, grpcStatusOf } from "./wire.ts";

/** The flag of an envelope with compressed content. */
export const COMPRESSED = 1;
/** As in Connect. */
const MIN_COMPRESSED_BYTES = 1_024;

export type RpcResponseOptions = {
  readonly form: DirectForm;
  readonly request: RequestHead;
  readonly requestId: string;
  /** By performance.now(). */
  readonly startedAt: number;
};

/** The response to an RPC that is served without Connect, in the format of one protocol. */
export abstract class RpcResponse extends CallResponse {
  /** Written at once, with the first message. */
  protected readonly headers: Record<string, string>;
  /** Undefined if the service set none. */
  protected trailers: Record<string, string> | undefined;
  protected readonly compression: Compression | null;
  readonly #channel: Channel;

  constructor(channel: Channel, { form, request, requestId, startedAt }: RpcResponseOptions) {
    const timeout = request.headers[form.timeoutHeader];
    const timeoutMs = timeout === undefined ? undefined : form.timeoutMs(String(timeout));
    super(channel, timeoutMs === undefined ? undefined : startedAt + timeoutMs);
    this.#channel = channel;
    this.headers = { "x-request-id": requestId, "content-type": form.contentType };
    this.compression = compressionOf(form, request);
    if (this.compression && form.isEnveloped) this.headers[form.encodingHeader] = this.compression.name;
  }

  abstract get headersSent(): boolean;
  /** Sends the whole response of a unary method. */
  abstract sendOnly(message: Uint8Array, flags: number): void;
  /** Sends one message of a stream; false if the next one must wait until the response is writable. */
  abstract sendMessage(message: Uint8Array, flags: number): boolean;
  /** Resets a stream whose caller does not read it. */
  protected abstract reset(): void;
  /** Ends a stream, or a call with an error. Has no effect on a complete response. */
  abstract end(error?: ConnectError): void;

  /** Whether the response is complete, or cannot be completed because the caller disconnected. */
  get isDone(): boolean {
    return this.#channel.writableEnded || isClosed(this.#channel);
  }

  setHeader(name: string, value: string): void {
    this.headers[name] = value;
  }

  setTrailer(name: string, value: string): void {
    this.trailers = { ...this.trailers, [name]: value };
  }

  sendError(error: DomainError | ConnectError): void {
    if (error instanceof DomainError && !this.headersSent) setErrorHeaders(this, error);
    this.end(toConnectError(error));
  }

  /** The compressed message; undefined if it is sent uncompressed. */
  compress(message: Uint8Array): Promise<Uint8Array> | undefined {
    return message.length < MIN_COMPRESSED_BYTES ? undefined : this.compression?.compress(message);
  }

  /** Waits until another message can be sent, or the response is closed. */
  async untilWritable(): Promise<void> {
    const { signal } = this;
    await untilWritable(this.#channel, signal);
    if (!signal.aborted || this.isDone) return;
    // A status would wait behind the messages that the caller does not read.
    this.reset();
    throw signal.reason;
  }
}

/** Without a list of accepted compressions, an enveloped response has that of the request, as in gRPC. */
function compressionOf(form: DirectForm, { headers }: RequestHead): Compression | null {
  const accepted = headers[form.acceptHeader];
  const sent = form.isEnveloped ? headers[form.encodingHeader] : undefined;
  if (accepted === undefined && sent === undefined) return null;
  return compressionNegotiate(acceptCompression, textOf(sent), textOf(accepted), form.acceptHeader).response;
}

function textOf(header: string | string[] | undefined): string | null {
  return header === undefined ? null : String(header);
}

/** The response to an RPC on a response object, over HTTP/1.1 or HTTP/2. */
abstract class HttpRpcResponse extends RpcResponse {
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

/** The last envelope of a response. */
type LastFrame = { readonly flags: number; readonly content: Uint8Array };

/** A response whose body consists of envelopes: the last one contains the status and the trailers. */
abstract class FramedResponse extends HttpRpcResponse {
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

const END_OF_STREAM: LastFrame = { flags: endStreamFlag, content: Buffer.from("{}") };

/** The response to a streaming call over Connect: the last envelope contains the error and the trailers. */
export class ConnectStreamResponse extends FramedResponse {
  protected lastFrame(error: ConnectError | undefined): LastFrame {
    if (!error && !this.trailers) return END_OF_STREAM;
    const end = endStreamToJson(new Headers(this.trailers), error, undefined);
    return { flags: endStreamFlag, content: Buffer.from(JSON.stringify(end)) };
  }
}

const OK_TRAILERS: LastFrame = { flags: trailerFlag, content: Buffer.from("grpc-status: 0\r\n") };

/** The response to a call over gRPC-Web: the last envelope contains the trailers. */
export class GrpcWebResponse extends FramedResponse {
  protected lastFrame(error: ConnectError | undefined): LastFrame {
    if (!error && !this.trailers) return OK_TRAILERS;
    const trailers = new Headers(this.trailers);
    setTrailerStatus(trailers, error);
    return { flags: trailerFlag, content: trailerSerialize(trailers) };
  }
}

const OK_STATUS = { "grpc-status": "0" };

/** The response to a call over gRPC, on an HTTP/2 stream: messages in envelopes, the status in the trailers. */
export class GrpcResponse extends RpcResponse {
  readonly #stream: ServerHttp2Stream;
  #status: Record<string, string> = OK_STATUS;

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
    // Node sends the trailers in an immediate. The caller may still be sending a body that is no longer read.
    if (this.#stream.isPaused()) setImmediate(() => this.#stream.close(constants.NGHTTP2_NO_ERROR));
  }
}
