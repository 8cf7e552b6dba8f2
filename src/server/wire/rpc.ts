import { create, type DescService, type Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type Compression, compressionNegotiate } from "@connectrpc/connect/protocol";
import type { parseTimeout } from "@connectrpc/connect/protocol-grpc";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { BoundMethod } from "../../api/define-service.ts";
import { type BodyLimits, type BodySource, CallerDisconnected, decompress, freeBytes, readBytes } from "../../codec/body.ts";
import type { BodyShare } from "../../codec/body-budget.ts";
import { decode } from "../../codec/decode.ts";
import { Readers } from "../../codec/json/reader.ts";
import { hasLongList } from "../../codec/json/writer.ts";
import { joinShort, lengthOf, type Parts, piecesOf } from "../../codec/message-parts.ts";
import { DomainError } from "../../domain/errors.ts";
import { Call, type Channel, type PrepareOptions, prepareMethod, type ServedMethod } from "../call.ts";
import { toConnectError } from "../errors/connect-error.ts";
import { setErrorHeaders } from "../errors/http-error.ts";
import { type RequestHead, untilWritable, writePieces } from "../http/message.ts";
import { compress, MIN_COMPRESSED_BYTES } from "./compress.ts";
import { type Encoding, JSON_ENCODING, type MethodMessages, PROTO } from "./encodings.ts";

/** The format of a call over gRPC, gRPC-Web or Connect: its content type, and the headers of its protocol. */
export type RpcFormat = {
  readonly protocol: "grpc" | "grpc-web" | "connect";
  readonly encoding: Encoding;
  /** Whether messages are framed: in gRPC, gRPC-Web and streams of Connect. */
  readonly isEnveloped: boolean;
  readonly contentType: string;
  readonly encodingHeader: "grpc-encoding" | "connect-content-encoding" | "content-encoding";
  /** The request header that lists the compressions that the caller reads. */
  readonly acceptHeader: "grpc-accept-encoding" | "connect-accept-encoding" | "accept-encoding";
  readonly timeoutHeader: "grpc-timeout" | "connect-timeout-ms";
  /** As Connect parses it: the milliseconds, or an error. */
  readonly parseTimeout: typeof parseTimeout;
  /** The last envelope of a response, with the status and the trailers; undefined if they are not in the body. */
  readonly lastFrame?: (error: ConnectError | undefined, trailers: Record<string, string> | undefined) => LastFrame;
};

export type LastFrame = { readonly flags: number; readonly content: Uint8Array };

/** A protocol with each encoding of messages. */
export type RpcFormats = Readonly<Record<Encoding["name"], RpcFormat>>;

/** @param base the content type without the name of the encoding */
export function withEncodings(format: Omit<RpcFormat, "encoding" | "contentType">, base: string): RpcFormats {
  const of = (encoding: Encoding) => ({ ...format, encoding, contentType: `${base}${encoding.name}` });
  return { proto: of(PROTO), json: of(JSON_ENCODING) };
}

export type RpcMethod = ServedMethod & MethodMessages;

/** The methods of the services, by their local names in `methods`. */
export function rpcMethods(
  services: readonly {
    readonly service: DescService;
    readonly methods: Readonly<Record<string, BoundMethod>>;
  }[],
  options: PrepareOptions & { readonly jsonOptions?: RpcMethod["jsonOptions"] },
): RpcMethod[] {
  // Callers may send fields of a later version.
  const readers = new Readers("ignore");
  return services.flatMap(({ service, methods }) =>
    service.methods.flatMap((desc) => {
      const invoke = methods[desc.localName];
      if (!invoke) return [];
      const { jsonOptions = {} } = options;
      return { ...prepareMethod(desc, invoke, options), desc, readJson: readers.of(desc.input), jsonOptions };
    }),
  );
}

/** Longer than any call. Node's timers fire at once if they are set to more than 24.8 days. */
const MAX_DEADLINE_MS = 3_600_000;

/** The deadline of a call, at most an hour; undefined if it has none, NaN if the header is not valid. */
export function timeoutMsOf({ timeoutHeader, parseTimeout }: RpcFormat, headers: RequestHead["headers"]): number | undefined {
  const header = headers[timeoutHeader];
  if (header === undefined) return undefined;
  const { timeoutMs = Number.NaN } = parseTimeout(String(header), Number.POSITIVE_INFINITY);
  return Math.min(timeoutMs, MAX_DEADLINE_MS);
}

/** One byte of flags, four of length. */
export const HEAD_BYTES = 5;

/** Frames a message for Connect streams, gRPC and gRPC-Web. */
export function envelope(flags: number, data: Uint8Array): Buffer {
  return Buffer.concat([envelopeHead(flags, data.length), data]);
}

function envelopeHead(flags: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head[0] = flags;
  head.writeUInt32BE(length, 1);
  return head;
}

/**
 * The compressions of RPCs. Brotli's default quality takes a hundred times as long and saves only a tenth
 * more.
 */
export const acceptCompression: Compression[] = [
  compressionGzip,
  { ...compressionBrotli, compress: async (bytes) => new Uint8Array(await compress("br", bytes)) },
];

/** Whether requests in this encoding can be read; undefined is a request without compression. */
export function isKnownEncoding(name: string | string[] | undefined): boolean {
  return name === undefined || name === "identity" || acceptCompression.some((known) => known.name === name);
}

/** A call over gRPC, gRPC-Web or Connect that is served without Connect. */
export abstract class RpcCall<
  Response extends Channel = Channel,
  Request extends RequestHead & BodySource = RequestHead & BodySource,
> extends Call<RpcMethod> {
  declare readonly request: Request;
  readonly format: RpcFormat;
  /** Written at once, with the first message. */
  protected readonly responseHeaders: Record<string, string>;
  /** Undefined if the service set none. */
  protected trailers: Record<string, string> | undefined;
  protected readonly compression: Compression | null;
  protected readonly response: Response;
  /** The last part is being compressed: nothing else may be sent. */
  #isEnding = false;

  constructor(
    method: RpcMethod,
    format: RpcFormat,
    request: Request,
    response: Response,
    requestId: string,
    timeoutMs: number | undefined,
  ) {
    super(method, request, response, requestId, timeoutMs);
    this.format = format;
    this.response = response;
    this.responseHeaders = {
      "x-request-id": requestId,
      "content-type": format.contentType,
      "cache-control": "no-store",
    };
    this.compression = compressionOf(format, request);
    if (this.compression && format.isEnveloped) this.responseHeaders[format.encodingHeader] = this.compression.name;
  }

  /** Sends the whole response of a unary method. */
  protected abstract sendOnly(message: Uint8Array, flags: number): void;
  protected abstract sendHeaders(): void;
  /** Sends one message of a stream; false if the next one must wait until the response is writable. */
  protected abstract sendMessage(message: Uint8Array, flags: number): boolean;
  /** Ends a stream, or a call with an error. Has no effect on a complete response. */
  protected abstract end(error?: ConnectError): void;
  /** Ends a response that stays incomplete. */
  protected abstract reset(): void;

  get protocol(): RpcFormat["protocol"] {
    return this.format.protocol;
  }

  override get maxBodyBytes(): number {
    return this.method.maxBodyBytes + (this.format.isEnveloped ? HEAD_BYTES : 0);
  }

  setHeader(name: string, value: string): void {
    this.responseHeaders[name] = value;
  }

  override get isDone(): boolean {
    return this.#isEnding || super.isDone;
  }

  setTrailer(name: string, value: string): void {
    this.trailers = { ...this.trailers, [name]: value };
  }

  read(share: BodyShare): Promise<Message> {
    const limits = { maxBytes: this.maxBodyBytes, share, bodyMs: bodyMsOf(share, this.remainingMs()) };
    return readMessage(this.method, this.format, this.request, limits);
  }

  async respond(result: unknown): Promise<void> {
    const { output } = this.method.desc;
    const message = create(output, result as never);
    const bytes = hasLongList(output, message) ? await joinShort(this.#partsOf(message)) : this.#encode(message);
    if (bytes === undefined) {
      await this.#sendParts(message);
      return;
    }
    const compressing = this.compress(bytes);
    const content = compressing === undefined ? bytes : await compressing;
    if (this.isDone) throw new CallerDisconnected();
    this.sendOnly(content, compressing === undefined ? 0 : COMPRESSED);
  }

  /** Sends a large message as its caller reads it, uncompressed: an envelope begins with the length of its content. */
  async #sendParts(message: Message): Promise<void> {
    const { isEnveloped } = this.format;
    const head = isEnveloped ? envelopeHead(0, await lengthOf(this.#partsOf(message))) : undefined;
    if (this.isDone) throw new CallerDisconnected();
    this.sendHeaders();
    if (head) this.response.write(head);
    try {
      await writePieces(this.response, piecesOf(this.#partsOf(message)), this.signal);
    } catch (error) {
      this.reset();
      throw error;
    }
    this.end();
  }

  startStream(): void {
    this.sendHeaders();
  }

  async respondWithStream(results: AsyncIterable<unknown>): Promise<void> {
    const { output } = this.method.desc;
    for await (const result of results) {
      const bytes = this.#encode(create(output, result as never));
      const compressing = this.compress(bytes);
      const content = compressing === undefined ? bytes : await compressing;
      if (this.isDone) {
        await this.turnToEnd();
        throw new CallerDisconnected();
      }
      const isWritable = this.sendMessage(content, compressing === undefined ? 0 : COMPRESSED);
      if (!isWritable) await this.#untilWritable();
    }
    if (this.isDone) throw new CallerDisconnected();
    this.end();
  }

  sendError(error: DomainError | ConnectError): undefined {
    if (error instanceof DomainError && !this.headersSent) setErrorHeaders(this, error);
    this.end(toConnectError(error));
  }

  /** The compressed message; undefined if it is sent uncompressed. */
  protected compress(message: Uint8Array): Promise<Uint8Array> | undefined {
    return message.length < MIN_COMPRESSED_BYTES ? undefined : this.compression?.compress(message);
  }

  /** Compresses the last part of the response, which may contain an error, and sends it. */
  protected sendLast(content: Uint8Array, send: (content: Uint8Array, flags: number) => void): void {
    const compressing = this.compress(content);
    if (compressing === undefined) {
      send(content, 0);
      return;
    }
    this.#isEnding = true;
    compressing.then((compressed) => send(compressed, COMPRESSED)).catch(() => this.reset());
  }

  #encode(message: Message): Uint8Array {
    return this.format.encoding.write(this.method, message);
  }

  #partsOf(message: Message): Parts {
    return this.format.encoding.parts(this.method, message);
  }

  /** Waits until another message can be sent, or the response is closed. */
  async #untilWritable(): Promise<void> {
    const { signal } = this;
    await untilWritable(this.response, signal);
    if (!signal.aborted || this.isDone) return;
    // A status would wait behind the messages that the caller does not read.
    this.reset();
    throw signal.reason;
  }
}

/** Without a list of accepted compressions, an enveloped response has that of the request, as in gRPC. */
function compressionOf(format: RpcFormat, { headers }: RequestHead): Compression | null {
  const accepted = headers[format.acceptHeader];
  const sent = format.isEnveloped ? headers[format.encodingHeader] : undefined;
  if (accepted === undefined && sent === undefined) return null;
  return compressionNegotiate(acceptCompression, textOf(sent), textOf(accepted), format.acceptHeader).response;
}

function textOf(header: string | string[] | undefined): string | null {
  return header === undefined ? null : String(header);
}

export function bodyMsOf(share: BodyShare, remainingMs = Number.POSITIVE_INFINITY): number {
  return Math.max(0, Math.min(share.bodyMs, remainingMs));
}

export const COMPRESSED = 1;
/** The flag of the last envelope of a Connect stream, which contains no message. */
const END_STREAM = 2;

export type MessageLimits = BodyLimits & { readonly share: BodyShare };

/** Reads and decodes the one message of a call, within the limits of the .proto. */
export async function readMessage(
  method: Pick<RpcMethod, "input" | "readJson">,
  format: RpcFormat,
  request: BodySource,
  limits: MessageLimits,
): Promise<Message> {
  const compression = request.headers[format.encodingHeader];
  const { encoding } = format;
  const body = await readBytes(request, limits);
  const bytes = await (format.isEnveloped
    ? openEnvelope(body, format, compression, limits)
    : decompressBody(body, compression, limits));
  try {
    return await decode(bytes, limits.share, encoding.read(method, bytes));
  } finally {
    if (!encoding.keepsBytes) freeBytes(bytes);
  }
}

function decompressBody(body: Buffer, encoding: string | string[] | undefined, limits: BodyLimits): Buffer | Promise<Buffer> {
  return body.length === 0 ? body : decompress(body, encoding, limits);
}

function openEnvelope(
  body: Buffer,
  format: RpcFormat,
  encoding: string | string[] | undefined,
  limits: BodyLimits,
): Buffer | Promise<Buffer> {
  if (body.length === 0) throw notOneMessage();
  checkFlags(body[0] as number, format);
  const end = endOfEnvelope(body, 0, limits.maxBytes);
  if (end < body.length && !isEndOfStream(body, end, format, limits.maxBytes)) throw notOneMessage();
  const bytes = body.subarray(HEAD_BYTES, end);
  if (((body[0] as number) & COMPRESSED) === 0) return bytes;
  // A message flagged as compressed needs an encoding: without one, gRPC and Connect require the code INTERNAL.
  if (encoding === undefined || encoding === "identity") throw new DomainError("unexpected_compression");
  return decompress(bytes, encoding, limits);
}

function checkFlags(flags: number, format: RpcFormat): void {
  if (format.protocol === "connect" && (flags & END_STREAM) !== 0) throw notOneMessage();
  if ((flags & ~COMPRESSED) === 0) return;
  throw new DomainError("invalid_argument", {
    message: `The message has unknown flags: ${flags.toString(2).padStart(8, "0")}.`,
  });
}

/** Whether the rest of the body is the end of a Connect stream, which some clients send. */
function isEndOfStream(body: Buffer, start: number, format: RpcFormat, maxBytes: number): boolean {
  const hasFlag = format.protocol === "connect" && ((body[start] as number) & END_STREAM) !== 0;
  return hasFlag && endOfEnvelope(body, start, maxBytes) === body.length;
}

function endOfEnvelope(body: Buffer, start: number, maxBytes: number): number {
  const head = start + HEAD_BYTES;
  if (body.length < head) throw incomplete();
  const length = body.readUInt32BE(start + 1);
  if (length > maxBytes) throw new DomainError("request_too_large");
  if (head + length > body.length) throw incomplete();
  return head + length;
}

function notOneMessage(): DomainError {
  return new DomainError("unimplemented", { message: "The method takes exactly one message." });
}

function incomplete(): DomainError {
  return new DomainError("invalid_argument", { message: "The message is incomplete." });
}
