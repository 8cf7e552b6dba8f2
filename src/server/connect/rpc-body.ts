import type { DescMethod, Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { readBinary } from "../../codec/binary/read-message.ts";
import { type BodyLimits, CallerGone, decompress, readBytes } from "../../codec/body.ts";
import type { BodyBudget } from "../../codec/body-budget.ts";
import type { Reader } from "../../codec/json/reader.ts";
import { DomainError } from "../../domain/errors.ts";
import { toConnectError } from "../errors/connect-error.ts";
import { toKnownError } from "../errors/known-error.ts";
import type { Call } from "../gate/call.ts";
import type { HttpRequest, HttpResponse } from "../http.ts";
import { parse, readMessage } from "../rest/read-request.ts";
import { stopBody } from "../stop-body.ts";
import type { Decoded } from "./decoded.ts";
import { envelope, HEAD_BYTES } from "./envelope.ts";

/** How the request of a method is decoded. */
export type RpcInput = {
  readonly method: DescMethod;
  readonly maxBytes: number;
  readonly readJson: Reader;
  readonly budget: BodyBudget;
};

const COMPRESSED = 1;
/** The flag of the last envelope of a Connect stream, which holds no message. */
const END_STREAM = 2;

const EMPTY_JSON = Buffer.from("{}");

/**
 * The body of a call over gRPC, gRPC-Web or Connect. It is decoded here, within the limits of the .proto,
 * when Connect starts to read it, which is after the gate. Connect gets an empty message in its place.
 */
export class RpcBody implements Decoded {
  message: Message | undefined;
  readonly #input: RpcInput;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  readonly #call: Call;

  constructor(input: RpcInput, request: HttpRequest, response: HttpResponse, call: Call) {
    this.#input = input;
    this.#request = request;
    this.#response = response;
    this.#call = call;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const { isEnveloped, isJson } = formOf(this.#request);
    try {
      this.message = await this.#read(isEnveloped, isJson);
    } catch (error) {
      if (error instanceof CallerGone) throw new ConnectError("the caller went away", Code.Canceled);
      stopBody(this.#request, this.#response);
      const known = toKnownError(error);
      this.#call.failure = known;
      throw toConnectError(known);
    }
    if (this.message === undefined) return;
    const empty = isJson ? EMPTY_JSON : Buffer.alloc(0);
    yield isEnveloped ? envelope(0, empty) : empty;
  }

  async #read(isEnveloped: boolean, isJson: boolean): Promise<Message | undefined> {
    const { method, readJson, budget, maxBytes } = this.#input;
    const hold = budget.hold(this.#call.key?.accountId);
    const limits = { maxBytes: maxBytes + (isEnveloped ? HEAD_BYTES : 0), hold, bodyMs: budget.bodyMs };
    try {
      const sent = await readBytes(this.#request, limits);
      const bytes = isEnveloped ? await this.#open(sent, limits) : await this.#unwrapped(sent, limits);
      if (bytes === undefined) return undefined;
      const steps = isJson ? readMessage(readJson, bytes) : readBinary(method.input, bytes);
      return await parse(bytes, budget, steps);
    } finally {
      hold.release();
    }
  }

  /** The single message in its envelope; undefined if the body is empty. */
  async #open(sent: Buffer, limits: BodyLimits): Promise<Buffer | undefined> {
    if (sent.length === 0) return undefined;
    const end = endOfEnvelope(sent, 0, limits.maxBytes);
    const flags = sent[0] as number;
    if (end < sent.length) this.#checkRest(sent, end, limits.maxBytes);
    const bytes = sent.subarray(HEAD_BYTES, end);
    return (flags & COMPRESSED) === 0 ? bytes : this.#inflated(bytes, limits);
  }

  /**
   * A message flagged as compressed needs an encoding: without one, gRPC and Connect require the code
   * INTERNAL.
   */
  #inflated(bytes: Buffer, limits: BodyLimits): Promise<Buffer> {
    const { headers } = this.#request;
    const encoding = headers["grpc-encoding"] ?? headers["connect-content-encoding"];
    if (encoding === undefined || encoding === "identity") throw new DomainError("unexpected_compression");
    return decompress(bytes, encoding, limits);
  }

  #checkRest(sent: Buffer, start: number, maxBytes: number): void {
    const isEnd = this.#call.protocol === "connect" && ((sent[start] as number) & END_STREAM) !== 0;
    if (isEnd && endOfEnvelope(sent, start, maxBytes) === sent.length) return;
    throw new DomainError("unimplemented", { message: "The method takes one message." });
  }

  async #unwrapped(sent: Buffer, limits: BodyLimits): Promise<Buffer> {
    return sent.length === 0 ? sent : decompress(sent, this.#request.headers["content-encoding"], limits);
  }
}

function formOf(request: HttpRequest): { readonly isEnveloped: boolean; readonly isJson: boolean } {
  const type = request.headers["content-type"] ?? "";
  return { isEnveloped: /^application\/(?:grpc|connect)/.test(type), isJson: /^[^;]*json/.test(type) };
}

function endOfEnvelope(bytes: Buffer, start: number, maxBytes: number): number {
  const head = start + HEAD_BYTES;
  if (bytes.length < head) throw new DomainError("invalid_argument", { message: "A message is incomplete." });
  const length = bytes.readUInt32BE(start + 1);
  if (length > maxBytes) throw new DomainError("request_too_large");
  if (head + length > bytes.length)
    throw new DomainError("invalid_argument", { message: "A message is incomplete." });
  return head + length;
}
