import type { Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import {
  ConnectError,
  type ContextKey,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { compressionNegotiate, createAsyncIterable, type UniversalHandler } from "@connectrpc/connect/protocol";
import { decompress } from "../../codec/body.ts";
import type { BodyShare } from "../../codec/body-budget.ts";
import { decode } from "../../codec/decode.ts";
import { DomainError } from "../../domain/errors.ts";
import { SMALL_BODY_BYTES } from "../../rules/body-limits.ts";
import { Call } from "../call.ts";
import { fromRequestError, toConnectError } from "../errors/connect-error.ts";
import { setErrorHeaders } from "../errors/http-error.ts";
import { type HttpRequest, type HttpResponse, type ServePath, stopBody } from "../http/message.ts";
import type { Serve } from "../interceptors/interceptor.ts";
import { connectUnary } from "../wire/connect.ts";
import { formatOf } from "../wire/formats.ts";
import { sendRpcRefusal } from "../wire/refusal.ts";
import {
  acceptCompression,
  bodyMsOf,
  envelope,
  HEAD_BYTES,
  type MessageLimits,
  type RpcFormat,
  type RpcMethod,
  readMessage,
  timeoutMsOf,
} from "../wire/rpc.ts";
import { isRpcRefused, setRpcHeaders, universalRequest, webHeaders, writeUniversal } from "./universal.ts";

/**
 * Serves every form of a call over gRPC, gRPC-Web and Connect, by the path of each method. Connect gets an empty message and
 * the outcome of the call, checks the protocol and encodes the response.
 */
export function connectRpcs(serve: Serve, methods: readonly RpcMethod[]): Map<string, ServePath> {
  const router = createConnectRouter({
    acceptCompression,
    // Connect itself only reads the query of a GET.
    readMaxBytes: SMALL_BODY_BYTES,
    // Runs before Connect reads anything: a call that already failed gets its error in the format of its protocol.
    requestGate: ({ values }) => void exchangeOf(values).outcome(),
  });
  for (const { desc, jsonOptions } of methods) {
    const implementation =
      desc.methodKind === "unary"
        ? (_: Message, context: HandlerContext) => exchangeOf(context.values).outcome(context)
        : (_: Message, context: HandlerContext) => exchangeOf(context.values).outcomes(context);
    router.rpc(desc, implementation as never, { jsonOptions });
  }
  return new Map(
    router.handlers.map((handler, index) => [
      handler.requestPath,
      (request, response, requestId) => {
        setRpcHeaders(response, requestId);
        if (isRpcRefused(handler, request, response)) return;
        const method = methods[index] as RpcMethod;
        return serve(new ConnectCall(handler, method, request, response, requestId));
      },
    ]),
  );
}

const exchangeKey: ContextKey<ConnectCall | undefined> = createContextKey<ConnectCall | undefined>(undefined);

function exchangeOf(values: ContextValues): ConnectCall {
  const exchange = values.get(exchangeKey);
  if (!exchange) throw new Error("the call was not created by connectRpcs");
  return exchange;
}

/** A call whose response Connect encodes. */
class ConnectCall extends Call<RpcMethod> {
  readonly #handler: UniversalHandler;
  readonly #format: RpcFormat;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  readonly #trailers: [name: string, value: string][] = [];
  #result: unknown;
  /** Why the call ends without a result. */
  #error: ConnectError | undefined;
  /** Why a stream ended after its start. */
  #streamError: unknown;

  constructor(handler: UniversalHandler, method: RpcMethod, request: HttpRequest, response: HttpResponse, requestId: string) {
    const ofQuery = () => connectUnary[queryOf(request).get("encoding") === "json" ? "json" : "proto"];
    const format = request.method === "GET" ? ofQuery() : formatOf(request.headers);
    const timeoutMs = timeoutMsOf(format, request.headers);
    super(method, request, response, requestId, Number.isNaN(timeoutMs) ? undefined : timeoutMs);
    this.#handler = handler;
    this.#format = format;
    this.#request = request;
    this.#response = response;
  }

  get protocol(): RpcFormat["protocol"] {
    return this.#format.protocol;
  }

  override get maxBodyBytes(): number {
    return this.method.maxBodyBytes + (this.#format.isEnveloped ? HEAD_BYTES : 0);
  }

  setHeader(name: string, value: string): void {
    if (!this.headersSent) this.#response.setHeader(name, value);
  }

  setTrailer(name: string, value: string): void {
    this.#trailers.push([name, value]);
  }

  /** Also aborts a call whose signal is not requested: Connect encodes the error. */
  override abort(reason: DomainError): void {
    if (!this.signal.aborted) super.abort(reason);
  }

  read(share: BodyShare): Promise<Message> {
    this.#checkHeaders();
    const limits = { maxBytes: this.maxBodyBytes, share, bodyMs: bodyMsOf(share, this.remainingMs()) };
    return this.#request.method === "GET"
      ? readQuery(this.method, this.#format, this.#request, limits)
      : readMessage(this.method, this.#format, this.#request, limits);
  }

  /** Throws the errors that Connect has for an unknown compression and for a deadline that is not valid. */
  #checkHeaders(): void {
    const { headers, method } = this.#request;
    const { acceptHeader, encodingHeader, timeoutHeader, parseTimeout } = this.#format;
    const sent = method === "GET" ? queryOf(this.#request).get("compression") : headers[encodingHeader];
    const encoding = sent === undefined || sent === null ? null : String(sent);
    const unknown = compressionNegotiate(acceptCompression, encoding, null, acceptHeader).error;
    if (unknown) {
      const error = toConnectError(new DomainError("unimplemented", { message: unknown.rawMessage }));
      for (const [name, value] of unknown.metadata) error.metadata.set(name, value);
      throw error;
    }
    const timeout = headers[timeoutHeader];
    const { error } = timeout === undefined ? {} : parseTimeout(String(timeout), Number.POSITIVE_INFINITY);
    if (error) throw new DomainError("invalid_argument", { message: error.rawMessage });
  }

  async respond(result: unknown): Promise<void> {
    this.#result = result;
    await this.#send();
  }

  /** Connect sends the headers with the first message. */
  startStream(): void {}

  async respondWithStream(results: AsyncIterable<unknown>): Promise<void> {
    this.#result = results;
    await this.#send();
    if (this.#streamError !== undefined) throw this.#streamError;
  }

  async sendError(error: DomainError | ConnectError): Promise<void> {
    if (this.headersSent || this.isDone) return;
    if (error instanceof DomainError && error.reason === "unsupported_media_type") {
      sendRpcRefusal(this.#request, this.#response, error);
      return;
    }
    stopBody(this.#request, this.#response);
    this.#error = this.#errorToSend(error);
    await this.#send();
  }

  #errorToSend(error: unknown): ConnectError {
    const known = error instanceof ConnectError ? error : fromRequestError(error);
    if (known instanceof DomainError && !this.headersSent) setErrorHeaders(this.#response, known);
    return toConnectError(known);
  }

  /** Lets Connect encode the outcome, and sends it. */
  async #send(): Promise<void> {
    const { isEnveloped, encoding } = this.#format;
    const values = createContextValues().set(exchangeKey, this);
    const { name, empty } = encoding;
    const body = createAsyncIterable([isEnveloped ? envelope(0, empty) : empty]);
    const url = `http://vx/?encoding=${name}&message=${empty}`;
    const request = universalRequest(this.#request, decodedHeaders(this.#request), body, this.signal);
    const response = await this.#handler({ ...request, url, contextValues: values });
    const code = await writeUniversal(response, this.#response);
    if (code !== 0 && !this.#error && this.#streamError === undefined)
      throw new ConnectError("the response cannot be encoded", code);
  }

  /** What Connect gets as the result of the method. */
  outcome(context?: HandlerContext): unknown {
    if (this.#error) throw this.#error;
    if (context) for (const [name, value] of this.#trailers) context.responseTrailer.set(name, value);
    return this.#result;
  }

  async *outcomes(context: HandlerContext): AsyncGenerator<unknown> {
    try {
      yield* this.outcome() as AsyncIterable<unknown>;
    } catch (error) {
      this.#streamError = error;
      throw this.#errorToSend(error);
    } finally {
      for (const [name, value] of this.#trailers) context.responseTrailer.set(name, value);
    }
  }
}

/** The headers for Connect, whose message is empty, and whose signal has the deadline. */
function decodedHeaders(request: HttpRequest): Headers {
  const headers = webHeaders(request);
  for (const name of ["content-length", "content-encoding", "grpc-timeout", "connect-timeout-ms"]) headers.delete(name);
  return headers;
}

function queryOf({ url = "" }: HttpRequest): URLSearchParams {
  const start = url.indexOf("?");
  return new URLSearchParams(start < 0 ? "" : url.slice(start));
}

async function readQuery(
  method: RpcMethod,
  { encoding }: RpcFormat,
  request: HttpRequest,
  limits: MessageLimits,
): Promise<Message> {
  const query = queryOf(request);
  if (!["json", "proto"].includes(query.get("encoding") ?? "")) throw new DomainError("unsupported_media_type");
  const text = query.get("message") ?? "";
  const sent = query.get("base64") === "1" ? fromBase64(text) : Buffer.from(text);
  const bytes = sent.length === 0 ? sent : await decompress(sent, query.get("compression") ?? undefined, limits);
  return decode(bytes, limits.share, encoding.read(method, bytes));
}

function fromBase64(text: string): Buffer {
  try {
    return Buffer.from(base64Decode(text));
  } catch (cause) {
    throw new DomainError("invalid_argument", {
      message: 'The parameter "message" of the query is not valid base64.',
      cause,
    });
  }
}
