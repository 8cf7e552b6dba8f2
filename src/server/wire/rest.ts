import type { ServerResponse } from "node:http";
import { create, type Message } from "@bufbuild/protobuf";
import { EmptySchema, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { CallerDisconnected, freeBytes, KNOWN_ENCODINGS, readJsonBytes } from "../../codec/body.ts";
import type { BodyShare } from "../../codec/body-budget.ts";
import { decode, readJsonMessage } from "../../codec/decode.ts";
import { JsonScanner } from "../../codec/json/json-scanner.ts";
import { hasLongList, writeInParts } from "../../codec/json/writer.ts";
import { joinShort, piecesOf } from "../../codec/message-parts.ts";
import { invalid, RequestProblem } from "../../codec/problem.ts";
import type { Steps } from "../../codec/steps.ts";
import type { DomainError } from "../../domain/errors.ts";
import type { Policy } from "../../rules/policy.ts";
import type { HttpRoute } from "../../telemetry/telemetry.ts";
import { Call, type PrepareOptions, type ServedMethod } from "../call.ts";
import { ensureDomainError, fromRequestError } from "../errors/connect-error.ts";
import { errorStatus, setErrorHeaders } from "../errors/http-error.ts";
import { varyWith } from "../http/cors.ts";
import {
  type HttpRequest,
  type HttpResponse,
  hasBody,
  isClosed,
  pathOf,
  stopBody,
  untilWritable,
  writePieces,
} from "../http/message.ts";
import type { Serve } from "../interceptors/interceptor.ts";
import { bindPath, bindQuery } from "../rest/address-fields.ts";
import type { HttpBinding } from "../rest/http-rule.ts";
import { prefers } from "../rest/other-forms.ts";
import {
  correctionOf,
  describeNoRoute,
  type Endpoint,
  findRestRoute,
  type RestRoute,
  type RestService,
  type RouteMatch,
  restRoutes,
  selectEndpoint,
} from "../rest/rest-routes.ts";
import { eventText, type RestSurface } from "../rest/surfaces.ts";
import { describeUnsupported } from "../rest/unsupported-apis.ts";
import { chooseEncoding, compress, compressPieces, type Encoding, MIN_COMPRESSED_BYTES } from "./compress.ts";

type RestOptions = PrepareOptions & { readonly serve: Serve; readonly services: readonly RestService[] };

export type RestServer = {
  /** Whether REST serves the path, known or not. */
  readonly serves: (path: string) => boolean;
  readonly serve: (request: HttpRequest, response: HttpResponse, path: string, requestId: string) => Promise<void>;
  /** What to add to the refusal of a path that no one serves. */
  readonly correctionOf: (path: string) => string;
};

/** REST directly on node:http and node:http2. */
export function restServer(options: RestOptions): RestServer {
  const routes = restRoutes(options.services, options);
  const above = ["/v1", ...routes.basePaths];
  return {
    serve: (request, response, path, requestId) => {
      const match = findRestRoute(routes, request.method ?? "", path, request.headers);
      return options.serve(new RestCall(match, request, response, requestId));
    },
    serves: (path) =>
      above.some((start) => path.startsWith(start) && (path.length === start.length || path[start.length] === "/")),
    correctionOf: (path) => correctionOf(routes, path),
  };
}

/** Unknown addresses also require a key: a caller without one cannot find out which routes exist. */
const NO_ROUTE_POLICY: Policy = {
  access: "developer",
  scope: undefined,
  role: undefined,
  memberRole: undefined,
  rateLimited: false,
  metered: false,
  whileSuspended: true,
  logged: false,
};

const NO_ROUTE: ServedMethod = {
  rpc: "none",
  name: "none",
  input: EmptySchema,
  selectedBy: "",
  isStream: false,
  policy: NO_ROUTE_POLICY,
  // The body is not read, so its size does not matter.
  maxBodyBytes: Number.POSITIVE_INFINITY,
  invoke: () => undefined,
};

/** Long enough to cost little, short enough for proxies that close silent connections. */
export const KEEP_ALIVE_MS = 15_000;

/** A message whose `type` is the name of its event; `restRoutes` checks that it has the field. */
type Typed = Message & { readonly type: string };

/** A call over REST, on node:http and node:http2. For speed it creates no Headers. REST has no deadlines. */
class RestCall extends Call {
  readonly protocol = "rest";
  readonly #match: RouteMatch;
  readonly #surface: RestSurface;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  /** Names and values in turn, written at once: cheaper than setting and merging them one by one. */
  readonly #headers: string[] = [];
  #endpoint: Endpoint | undefined;
  /** The response, once the headers of its stream are sent. */
  #sink: ServerResponse | undefined;
  #openStream: (() => unknown) | undefined;

  constructor(match: RouteMatch, request: HttpRequest, response: HttpResponse, requestId: string) {
    super(match.route?.first ?? NO_ROUTE, request, response, requestId, undefined);
    this.#match = match;
    this.#surface = match.surface;
    this.#request = request;
    this.#response = response;
    this.#endpoint = match.route?.first;
    for (const name of match.surface.requestIdHeaders) this.#headers.push(name, requestId);
  }

  override get acceptsKeyHeader(): boolean {
    return this.#surface.acceptsKeyHeader;
  }

  override get route(): HttpRoute | undefined {
    return this.#endpoint?.binding;
  }

  setHeader(name: string, value: string): void {
    for (let at = 0; at < this.#headers.length; at += 2) {
      if (this.#headers[at] !== name) continue;
      this.#headers[at + 1] = value;
      return;
    }
    this.#headers.push(name, value);
  }

  /** Declares that the response also depends on this request header. */
  #addVary(name: string): void {
    this.#headers.push("vary", varyWith(this.#response, name));
  }

  /** Reads the body, then the query, then the path: values in the address win. */
  read(share: BodyShare): Message | Promise<Message> {
    const { route } = this.#match;
    if (!route) return this.#refuseAddress();
    if (route.first.binding.hasBody) return this.#readBody(route, share);
    const isBody = hasBody(this.#request);
    return typeof isBody === "boolean"
      ? this.#readAddress(route.first, isBody)
      : isBody.then((isSent) => this.#readAddress(route.first, isSent));
  }

  async #readBody(route: RestRoute, share: BodyShare): Promise<Message> {
    let bytes: Buffer | undefined;
    try {
      const limits = { maxBytes: this.maxBodyBytes, share, bodyMs: share.bodyMs };
      const read = readJsonBytes(this.#request, limits);
      bytes = read instanceof Promise ? await read : read;
      const decoded = decode(bytes, share, decodeBody(route.first, bytes));
      const message = decoded instanceof Promise ? await decoded : decoded;
      const endpoint = selectEndpoint(route, message);
      this.method = endpoint;
      this.#endpoint = endpoint;
      return this.#bindAddress(endpoint, message);
    } finally {
      // Decoded JSON does not refer to the body.
      if (bytes) freeBytes(bytes);
    }
  }

  #readAddress(endpoint: Endpoint, isBodySent: boolean): Message {
    if (isBodySent) throw invalid("", "This path does not take a request body.");
    return this.#bindAddress(endpoint, create(endpoint.input));
  }

  #bindAddress(endpoint: Endpoint, message: Message): Message {
    const query = queryOf(this.target);
    if (query !== "") bindQuery(endpoint, query, message);
    const { resumedBy, variables } = endpoint.binding;
    const [lastId = ""] = resumedBy ? this.headers("last-event-id") : [];
    if (resumedBy && lastId !== "") Object.assign(message, { [resumedBy.localName]: lastId });
    if (variables.length > 0) bindPath(endpoint.binding, this.#match.values, message);
    return message;
  }

  /** OPTIONS lists the verbs of an address. It requires a key; preflights never get here. */
  #refuseAddress(): Message {
    const { allowed, elsewhere, correction } = this.#match;
    if (allowed.length === 0) {
      if (elsewhere && correction === "") throw new RequestProblem("invalid", describeUnsupported(elsewhere));
      throw new RequestProblem("not_found", describeNoRoute(pathOf(this.#request) ?? "", correction));
    }
    const list = allowed.join(", ");
    this.setHeader("allow", list);
    const verb = this.#request.method ?? "";
    if (verb === "OPTIONS") return create(EmptySchema);
    const message = `This path does not support ${verb}. Use ${list}.`;
    const named = elsewhere ? `${message} ${describeUnsupported(elsewhere)}` : message;
    throw new RequestProblem("method_not_allowed", named);
  }

  /** Returns a promise if the response is printed in turns or compressed first. */
  respond(result: unknown): Promise<void> | undefined {
    if (!this.#endpoint) {
      this.#sendEmpty();
      return undefined;
    }
    const { binding, otherForm, write } = this.#endpoint;
    const { output } = binding.method;
    const message = create(output, result as never);
    if (otherForm) this.#addVary("accept");
    if (otherForm && prefers(this.headers("accept"), otherForm.mediaType)) {
      for (const [name, value] of otherForm.headers(message)) this.setHeader(name, value);
      return this.#sendText(otherForm.text(message), otherForm.contentType);
    }
    if (!hasLongList(output, message)) return this.#sendText(write(message), "application/json");
    return this.#sendParts(() => writeInParts(write, output, message));
  }

  /** Sends a large message as its caller reads it, without its length. */
  async #sendParts(write: () => Generator<string>): Promise<void> {
    const short = await joinShort(write());
    if (short !== undefined) {
      await this.#sendText(short.toString(), "application/json");
      return;
    }
    if (this.headersSent || isClosed(this.#response)) return;
    this.#addVary("accept-encoding");
    const encoding = chooseEncoding(this.headers("accept-encoding"));
    if (encoding !== undefined) this.setHeader("content-encoding", encoding);
    this.#headers.push("content-type", "application/json", "cache-control", "no-store");
    const pieces = piecesOf(write());
    const sink = this.#writeHead(200);
    try {
      await writePieces(sink, encoding ? compressPieces(encoding, pieces) : pieces, this.signal);
    } catch (error) {
      sink.destroy();
      throw error;
    }
    sink.end();
  }

  #sendText(text: string, contentType: string): Promise<void> | undefined {
    if (text.length >= MIN_COMPRESSED_BYTES) {
      // Also set on uncompressed responses: another caller may get a compressed one.
      this.#addVary("accept-encoding");
      const encoding = chooseEncoding(this.headers("accept-encoding"));
      if (encoding !== undefined) return this.#sendCompressed(encoding, text, contentType);
    }
    this.#send(200, text, contentType);
    return undefined;
  }

  async #sendCompressed(encoding: Encoding, text: string, contentType: string): Promise<void> {
    const bytes = await compress(encoding, text);
    this.setHeader("content-encoding", encoding);
    this.#send(200, bytes, contentType);
  }

  /** Sends the whole response, unless one was already sent or the caller has disconnected. */
  #send(status: number, body: string | Buffer, contentType: string): void {
    if (this.headersSent || isClosed(this.#response)) return;
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

  /** Sends a response without a body, which has no content-length either (RFC 9110). */
  #sendEmpty(): void {
    if (this.headersSent || isClosed(this.#response)) return;
    this.#headers.push("cache-control", "no-store");
    this.#writeHead(204).end();
  }

  #writeHead(status: number): ServerResponse {
    // TypeScript cannot call this method on the union: the two response types declare it differently.
    const writer = this.#response as ServerResponse;
    writer.writeHead(status, this.#headers);
    return writer;
  }

  startStream(): void {
    this.#openStream?.();
    this.#sink?.flushHeaders();
  }

  /**
   * Sends each message as a server-sent event. The headers are sent with the first one, with the first keep-alive, or by
   * `startStream`. An earlier error is an ordinary response.
   */
  async respondWithStream(results: AsyncIterable<unknown>): Promise<void> {
    const surface = this.#surface;
    const events = new EventReader(results, this);
    let position = 0;
    const open = () => {
      this.#sink ??= this.#sendStreamHeaders();
      if (this.#sink) events.endOnAbort();
      return this.#sink;
    };
    this.#openStream = open;
    const keepAlive = setInterval(() => open()?.write(surface.keepAlive), KEEP_ALIVE_MS);
    try {
      let next = await events.next();
      const sink = open();
      if (!sink) return;
      for (; next.done !== true; next = await events.next()) {
        if (isClosed(sink)) {
          await this.turnToEnd();
          throw new CallerDisconnected();
        }
        if (!sink.write(this.#eventOf(next.value))) await untilWritable(sink, this.signal);
        position++;
        keepAlive.refresh();
      }
      if (surface.end !== "") sink.write(surface.end);
    } catch (error) {
      const sink = this.#sink;
      if (!sink) throw error;
      if (isClosed(sink)) throw new CallerDisconnected();
      sink.write(surface.errorEvent(fromRequestError(error), this.requestId, position));
      throw error;
    } finally {
      clearInterval(keepAlive);
      this.#sink?.end();
      await events.close();
    }
  }

  /** Sends the headers of a stream; undefined if a response was sent or has ended. */
  #sendStreamHeaders(): ServerResponse | undefined {
    if (this.headersSent || isClosed(this.#response)) return undefined;
    this.#headers.push("content-type", "text/event-stream", "cache-control", "no-store", "x-accel-buffering", "no");
    return this.#writeHead(200);
  }

  #eventOf(result: unknown): string {
    const endpoint = this.#endpoint as Endpoint;
    const message = create(endpoint.binding.method.output, result as never);
    const name = this.#surface.namesEvents ? (message as Typed).type : undefined;
    return eventText(endpoint.write(message), name, endpoint.idOf?.(message));
  }

  sendError(error: DomainError | ConnectError): undefined {
    stopBody(this.#request, this.#response);
    const known = ensureDomainError(error);
    setErrorHeaders(this, known);
    if (known.reason === "unsupported_media_type") this.setHeader("accept-encoding", KNOWN_ENCODINGS);
    this.#send(errorStatus(known), this.#surface.errorBody(known, this.requestId), "application/json");
  }
}

/** Reads the messages of a stream, until the signal of an open stream aborts, even if the service is still running. */
class EventReader {
  readonly #messages: AsyncIterator<unknown>;
  readonly #exchange: Call;
  #signal: AbortSignal | undefined;
  #reject: (reason: unknown) => void = () => undefined;

  constructor(messages: AsyncIterable<unknown>, exchange: Call) {
    this.#messages = messages[Symbol.asyncIterator]();
    this.#exchange = exchange;
  }

  endOnAbort(): void {
    if (this.#signal) return;
    this.#signal = this.#exchange.signal;
    this.#signal.addEventListener("abort", this.#onAbort);
  }

  next(): Promise<IteratorResult<unknown>> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      if (this.#signal?.aborted) this.#onAbort();
      this.#messages.next().then(resolve, reject);
    });
  }

  async close(): Promise<void> {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    await this.#messages.return?.();
  }

  readonly #onAbort = () => this.#reject(this.#signal?.reason);
}

type BodyReader = Pick<Endpoint, "binding" | "input" | "readBody">;

export function* decodeBody({ binding, input, readBody }: BodyReader, bytes: Buffer): Steps<Message> {
  // An empty body is an empty object.
  if (bytes.length === 0) return create(input);
  const message = yield* readJsonMessage(readBody, bytes);
  if (binding.verb === "PATCH") yield* setUpdateMask(binding, message, bytes);
  return message;
}

/** A PATCH changes the fields that its body has; null clears them. */
function* setUpdateMask({ method, variables }: HttpBinding, message: Message, body: Buffer): Steps<void> {
  const fields = message as unknown as Record<string, unknown>;
  if (fields.updateMask !== undefined) return;
  const scanner = new JsonScanner(body);
  const names: string[] = [];
  for (const name of scanner.members()) {
    names.push(name);
    yield* scanner.skip();
  }
  const paths = method.input.fields
    .filter((field) => (names.includes(field.name) || names.includes(field.jsonName)) && !variables.includes(field))
    .map(({ name }) => name)
    .filter((name) => name !== "update_mask");
  fields.updateMask = create(FieldMaskSchema, { paths });
}

function queryOf(target: string): string {
  const start = target.indexOf("?");
  return start < 0 ? "" : target.slice(start + 1);
}
