import type { ConnectError } from "@connectrpc/connect";
import { type Compression, compressionNegotiate } from "@connectrpc/connect/protocol";
import { DomainError } from "../../domain/errors.ts";
import { CallResponse, type Channel } from "../call-response.ts";
import { toConnectError } from "../errors/connect-error.ts";
import { setErrorHeaders } from "../errors/error-headers.ts";
import { isClosed, type RequestHead } from "../http.ts";
import { untilWritable } from "../until-writable.ts";
import { acceptCompression } from "./compression.ts";
import type { DirectForm } from "./direct-form.ts";

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

/** The response to an RPC that is served without Connect, in the form of one protocol. */
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
