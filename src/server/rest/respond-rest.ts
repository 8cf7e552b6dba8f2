import type { ServerResponse } from "node:http";
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { CallerDisconnected, KNOWN_ENCODINGS } from "../../codec/body.ts";
import { writeLongLists } from "../../codec/json/writer.ts";
import { RequestProblem } from "../../codec/problem.ts";
import type { DomainError } from "../../domain/errors.ts";
import { CallResponse } from "../call-response.ts";
import { chooseEncoding, compress, type Encoding, isWorthCompressing } from "../compress.ts";
import { fromRequestError } from "../errors/connect-error.ts";
import { setErrorHeaders } from "../errors/refusal.ts";
import { errorStatus } from "../errors/rest-error-body.ts";
import { varyWith } from "../http/cors.ts";
import { type HttpResponse, isClosed, untilWritable } from "../http/message.ts";
import type { IncomingCall } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { prefersCsv } from "./csv-response.ts";
import type { Endpoint, RouteMatch } from "./rest-routes.ts";
import { eventText, type SurfaceForm } from "./surface-form.ts";
import { describeUnsupported } from "./unsupported-apis.ts";

/** Sends the result of a unary method; returns a promise if it is printed in turns or compressed first. */
export function respondOnce(
  endpoint: Endpoint,
  result: unknown,
  call: IncomingCall,
  response: RestResponse,
): Promise<void> | undefined {
  const message = toMessage(endpoint.method.output, result);
  const printing = writeLongLists(endpoint.method.output, message);
  if (printing === undefined) return sendMessage(endpoint, message, call, response);
  return printing.then(() => sendMessage(endpoint, message, call, response));
}

function sendMessage(
  endpoint: Endpoint,
  message: Message,
  call: IncomingCall,
  response: RestResponse,
): Promise<void> | undefined {
  const csv = endpoint.csv && prefersCsv(call.headers("accept")) ? endpoint.csv : undefined;
  if (endpoint.csv) response.addVary("accept");
  for (const [name, value] of csv?.headers(message) ?? []) response.setHeader(name, value);
  const text = csv ? csv.text(message) : endpoint.write(message);
  const contentType = csv ? "text/csv; charset=utf-8" : "application/json";
  if (isWorthCompressing(text)) {
    // Also set on uncompressed responses: another caller may get a compressed one.
    response.addVary("accept-encoding");
    const encoding = chooseEncoding(call.headers("accept-encoding").join(","), text);
    if (encoding !== undefined) return sendCompressed(encoding, text, contentType, response);
  }
  response.sendText(200, text, contentType);
  return undefined;
}

async function sendCompressed(
  encoding: Encoding,
  text: string,
  contentType: string,
  response: RestResponse,
): Promise<void> {
  const bytes = await compress(encoding, text);
  response.setHeader("content-encoding", encoding);
  response.sendText(200, bytes, contentType);
}

/** Sends the results of a streaming method. */
export async function respondWithStream(
  endpoint: Endpoint,
  results: unknown,
  call: IncomingCall,
  response: RestResponse,
  keepAliveMs: number,
): Promise<void> {
  const { form, method, write } = endpoint;
  await sendEvents((results as AsyncIterable<unknown>)[Symbol.asyncIterator](), {
    open: () => response.startStream("text/event-stream"),
    event: (value) => {
      const message = toMessage(method.output, value);
      return eventText(write(message), form.namesEvents ? (message as Typed).type : undefined);
    },
    errorEvent: (error, position) => form.errorEvent(fromRequestError(error), call.requestId, position),
    keepAlive: form.keepAlive,
    end: form.end,
    keepAliveMs,
    signal: () => response.signal,
  });
}

/** A message whose `type` is the name of its event; `restRoutes` checks that it has the field. */
type Typed = Message & { readonly type: string };

/** OPTIONS lists the verbs of an address. It requires a key; preflights never get here. */
export function respondWithoutRoute(
  verb: string,
  { allowed, elsewhere, correction }: RouteMatch,
  response: RestResponse,
): void {
  if (allowed.length === 0) {
    if (elsewhere && correction === "") throw new RequestProblem("invalid", describeUnsupported(elsewhere));
    throw new RequestProblem("not_found", `No route matches this path.${correction}`);
  }
  const list = allowed.join(", ");
  if (verb !== "OPTIONS") {
    const message = `This path does not support ${verb}. Use ${list}.`;
    const named = elsewhere ? `${message} ${describeUnsupported(elsewhere)}` : message;
    throw new RequestProblem("method_not_allowed", named, { allowed });
  }
  response.setHeader("allow", list);
  response.sendEmpty();
}

/** Sends an error, once; returns the code for the log if the failure itself does not have it. */
export function respondWithError(error: unknown, response: RestResponse, observation: Observation): Code | 0 {
  if (error instanceof CallerDisconnected) return Code.Canceled;
  const known = fromRequestError(error);
  observation.setFailure(error instanceof RequestProblem ? known : error);
  if (error instanceof RequestProblem) {
    if (error.allowed.length > 0) response.setHeader("allow", error.allowed.join(", "));
    if (error.kind === "unsupported_media_type") response.setHeader("accept-encoding", KNOWN_ENCODINGS);
  }
  response.sendError(known);
  return 0;
}

function toMessage(desc: DescMessage, value: unknown): Message {
  return create(desc, value as never);
}

/** A response that can be written in pieces, over HTTP/1.1 or HTTP/2. */
type EventSink = {
  write(text: string): boolean;
  end(): unknown;
  once(event: "close" | "drain", listener: () => void): unknown;
  off(event: "close" | "drain", listener: () => void): unknown;
};

type EventStreamOptions = {
  /** Sends the headers; undefined if the response has ended. */
  readonly open: () => EventSink | undefined;
  readonly event: (message: unknown) => string;
  /** An error after the headers; `position` is the number of events before it. */
  readonly errorEvent: (error: unknown, position: number) => string;
  readonly keepAlive: string;
  readonly keepAliveMs: number;
  /** Sent after the last event; empty for nothing. */
  readonly end: string;
  /** Ends an open stream, even if the service is still running. */
  readonly signal: () => AbortSignal;
};

/** Long enough to cost little, short enough for proxies that close silent connections. */
export const KEEP_ALIVE_MS = 15_000;

/**
 * Sends each message as a server-sent event. The headers are sent with the first one, or with the first keep-alive. An
 * earlier error is thrown: it can still be an ordinary response.
 */
async function sendEvents(messages: AsyncIterator<unknown>, options: EventStreamOptions): Promise<void> {
  let sink: EventSink | undefined;
  let position = 0;
  let cut: (reason: unknown) => void = () => undefined;
  let stopListening: (() => void) | undefined;
  const open = () => {
    sink = options.open();
    if (!sink) return;
    const signal = options.signal();
    const onAbort = () => cut(signal.reason);
    signal.addEventListener("abort", onAbort);
    stopListening = () => signal.removeEventListener("abort", onAbort);
  };
  const keepAlive = setInterval(() => {
    if (!sink) open();
    sink?.write(options.keepAlive);
  }, options.keepAliveMs);
  const nextMessage = () =>
    new Promise<IteratorResult<unknown>>((resolve, reject) => {
      cut = reject;
      if (sink && options.signal().aborted) cut(options.signal().reason);
      messages.next().then(resolve, reject);
    });
  try {
    let next = await nextMessage();
    if (!sink) open();
    if (!sink) return;
    for (; next.done !== true; next = await nextMessage()) {
      if (isClosed(sink)) throw new CallerDisconnected();
      if (!sink.write(options.event(next.value))) await untilWritable(sink);
      position++;
      keepAlive.refresh();
    }
    if (options.end !== "") sink.write(options.end);
  } catch (error) {
    if (!sink) throw error;
    if (isClosed(sink)) throw new CallerDisconnected();
    sink.write(options.errorEvent(error, position));
    throw error;
  } finally {
    stopListening?.();
    clearInterval(keepAlive);
    sink?.end();
    await messages.return?.();
  }
}

/** The response to a REST call. For speed it creates no Headers. REST has no deadlines. */
export class RestResponse extends CallResponse {
  readonly #response: HttpResponse;
  readonly #requestId: string;
  readonly #form: SurfaceForm;
  /** Names and values in turn, written at once: cheaper than setting and merging them one by one. */
  readonly #headers: string[] = [];

  constructor(response: HttpResponse, requestId: string, form: SurfaceForm) {
    super(response, undefined);
    this.#response = response;
    this.#requestId = requestId;
    this.#form = form;
    for (const name of form.requestIdHeaders) this.#headers.push(name, requestId);
  }

  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  setHeader(name: string, value: string): void {
    this.#headers.push(name, value);
  }

  /** Declares that the response also depends on this request header. */
  addVary(name: string): void {
    this.#headers.push("vary", varyWith(this.#response, name));
  }

  /** Sends the headers of a stream. Returns the response, for its pieces; undefined if it was sent or has ended. */
  startStream(contentType: string): ServerResponse | undefined {
    if (this.#response.headersSent || isClosed(this.#response)) return undefined;
    this.#headers.push("content-type", contentType, "cache-control", "no-store", "x-accel-buffering", "no");
    return this.#writeHead(200);
  }

  /** Sends the whole response, unless one was already sent or the caller has disconnected. */
  sendText(status: number, body: string | Buffer, contentType: string): void {
    if (this.#response.headersSent || isClosed(this.#response)) return;
    this.#headers.push(
      "content-type",
      contentType,
      "content-length",
      String(Buffer.byteLength(body)),
      "cache-control",
      "no-store",
    );
    this.#writeHead(status).end(body);
  }

  sendError(error: DomainError): void {
    setErrorHeaders(this, error);
    this.sendText(errorStatus(error), this.#form.errorBody(error, this.#requestId), "application/json");
  }

  /** Sends a response without a body, which has no content-length either (RFC 9110). */
  sendEmpty(): void {
    if (this.#response.headersSent || isClosed(this.#response)) return;
    this.#headers.push("cache-control", "no-store");
    this.#writeHead(204).end();
  }

  #writeHead(status: number): ServerResponse {
    // TypeScript cannot call this method on the union: the two response types declare it differently.
    const writer = this.#response as ServerResponse;
    writer.writeHead(status, this.#headers);
    return writer;
  }
}
