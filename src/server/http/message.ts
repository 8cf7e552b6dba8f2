import type { IncomingMessage, ServerResponse } from "node:http";
import {
  constants,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { isIP, isIPv4, isIPv6, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type BodySource, CallerDisconnected } from "../../codec/body.ts";
import { redactKeys } from "../../domain/credentials.ts";
import { type AddressRanges, plainAddress } from "../../domain/network.ts";

/** A request and its response over HTTP/1.1 or HTTP/2; Node has nearly the same API for both. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void;

/** Serves an HTTP/2 stream without request and response objects; returns false for a stream that needs them. */
export type StreamHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[]) => boolean;

/** What a call reads of its request; also that of an HTTP/2 stream, see StreamRequest. */
export type RequestHead = Pick<HttpRequest, "headers" | "rawHeaders" | "url"> &
  Connection & {
    /** The whole body has arrived, read or not. */
    readonly complete?: boolean;
  };

/** Over HTTP/2, the session of the stream; over HTTP/1.1, the socket. */
type Connection = { readonly stream: Pick<ServerHttp2Stream, "session"> } | { readonly socket: Duplex };

export type ServePath = (request: HttpRequest, response: HttpResponse, requestId: string) => void | Promise<void>;

export type HeaderSink = { setHeader(name: string, value: string): unknown };

/** A node:http response has `destroyed` itself; a node:http2 response has it only on its stream. */
type Closable = { readonly destroyed?: boolean; readonly stream?: { readonly destroyed: boolean } };

/** Whether the response is closed, so that nothing more can be written. */
export function isClosed(response: object): boolean {
  const { destroyed, stream } = response as Closable;
  return destroyed === true || stream?.destroyed === true;
}

/** All values of a header, including duplicates that Node drops. The name is in lower case. */
export function headerValues({ rawHeaders }: RequestHead, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const key = rawHeaders[i] as string;
    if (key.length === name.length && key.toLowerCase() === name) values.push(rawHeaders[i + 1] as string);
  }
  return values;
}

export function headerBytes(rawHeaders: readonly string[]): number {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

const ABSOLUTE = /^https?:\/\/([^/?#]+)(.*)$/is;

/**
 * A request target may be an absolute URL (RFC 9112, 3.2.2): its host then replaces the Host header. Later
 * code sees only the path.
 */
export function toOriginForm(request: HttpRequest): void {
  const target = request.url ?? "";
  if (target.startsWith("/")) return;
  const match = ABSOLUTE.exec(target);
  if (!match) return;
  const [, authority = "", rest = ""] = match;
  request.headers.host = authority;
  request.url = rest.startsWith("/") ? rest : `/${rest}`;
}

/** The path of the request without its query; undefined if the target is not a path. */
export function pathOf(request: HttpRequest): string | undefined {
  const target = request.url ?? "";
  if (!target.startsWith("/")) return undefined;
  const end = target.indexOf("?");
  return end < 0 ? target : target.slice(0, end);
}

/** A Host header must be a valid host (RFC 9110, 7.2), and HTTP/1.1 requires one (RFC 9112, 3.2). */
export function hasValidHost({ headers: { host }, httpVersion }: Pick<HttpRequest, "headers" | "httpVersion">): boolean {
  if (host === undefined) return httpVersion !== "1.1";
  return /^[\w.~!$&'()*+,;=%:[\]-]*$/.test(host);
}

export function contentLengthOf({ headers }: Pick<HttpRequest, "headers">): number | undefined {
  const text = headers["content-length"];
  return text === undefined ? undefined : Number(text);
}

/** Whether there is a body. The headers announce it, except for some bodies over HTTP/2. */
export function hasBody(source: BodySource): boolean | Promise<boolean> {
  const { headers, stream } = source;
  if (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0) return true;
  if (stream === undefined || stream.endAfterHeaders) return false;
  if (source.aborted || source.destroyed) return Promise.reject(new CallerDisconnected());
  return new Promise((resolve, reject) => {
    source.on("data", () => resolve(true));
    source.on("end", () => (source.aborted ? reject(new CallerDisconnected()) : resolve(false)));
    source.on("close", () => reject(new CallerDisconnected()));
  });
}

export function sendJson(response: HttpResponse, status: number, body: string | Buffer): void {
  send(response, status, "application/json", body);
}

export function send(response: HttpResponse, status: number, contentType: string, body: string | Buffer): void {
  if (response.headersSent || isClosed(response)) return;
  const headers = {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  };
  // The two kinds of response declare these in ways that TypeScript cannot call through their union.
  const writer = response as ServerResponse;
  writer.writeHead(status, headers);
  writer.end(body);
}

const SAFE_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** The caller's request id if it is safe to log and to store unchanged, otherwise a new one. */
export function requestIdFrom(given: string | string[] | undefined, newRequestId: () => string): string {
  if (typeof given === "string" && SAFE_ID.test(given) && redactKeys(given) === given) return given;
  return newRequestId();
}

/** Closes an HTTP/2 stream after its response, even if part of the request body is unread. */
export function stopBody(request: HttpRequest, response: HttpResponse): void {
  if (!("stream" in request) || request.complete || !request.isPaused()) return;
  response.once("finish", () => request.stream.close(constants.NGHTTP2_NO_ERROR));
}

type Writable = {
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
};

/** Waits until a response can be written again, is closed, or the signal aborts. */
export function untilWritable(response: Writable, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (isClosed(response) || signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    response.once("drain", done);
    response.once("close", done);
    signal?.addEventListener("abort", done);
  });
}

/**
 * Writes pieces as the caller reads them. If this throws, the response is incomplete: the caller has disconnected, or the signal was
 * aborted.
 */
export async function writePieces(
  response: Writable & { write(piece: string | Uint8Array): boolean },
  pieces: AsyncIterable<string | Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  for await (const piece of pieces) {
    if (!response.write(piece)) await untilWritable(response, signal);
    if (isClosed(response)) throw new CallerDisconnected();
    signal.throwIfAborted();
  }
}

/** The HTTP servers get a stream over the socket; its addresses and TLS state are those of the socket. */
const sockets = new WeakMap<Duplex | Http2Session, Socket>();

/** The connection is an HTTP/2 session, or the stream that an HTTP/1.1 server gets. */
export function setRawSocket(connection: Duplex | Http2Session, socket: Socket): void {
  sockets.set(connection, socket);
}

export function rawSocketOf(request: RequestHead): Socket | undefined {
  const connection = "stream" in request ? request.stream.session : request.socket;
  return connection && sockets.get(connection);
}

/** Empty if the connection is already closed. */
export function remoteAddressOf(request: RequestHead): string {
  return rawSocketOf(request)?.remoteAddress ?? "";
}

/** Sends "100 Continue" when the body is first read, so that the caller of a refused call sends no body. */
export function continueOnRead(handle: HttpHandler): HttpHandler {
  return (request, response) => {
    const onListener = (event: string | symbol) => {
      if (event !== "data" && event !== "readable") return;
      request.off("newListener", onListener);
      if (!response.headersSent) response.writeContinue();
    };
    request.on("newListener", onListener);
    handle(request, response);
  };
}

/** No address, so it is in no range of a key. */
export const UNKNOWN_ADDRESS = "unknown";

/** What a call says of its sender: the address of its connection, and all values of a header. */
type Sender = { readonly remoteAddress: string; headers(name: string): readonly string[] };

/**
 * The address of the caller. Behind trusted proxies, it is the nearest address in Forwarded (RFC 7239) or X-Forwarded-For that is not
 * of a trusted proxy. An entry that is no address ends the search at the trusted proxy that sent it. The address is unknown if
 * Forwarded is malformed or the two headers differ: most proxies set one of them and pass on the other as the caller sent it, and a
 * caller must not get the address of a proxy by that.
 */
export function clientAddress(sender: Sender, proxies: AddressRanges | undefined): string {
  const { remoteAddress } = sender;
  if (!proxies?.has(remoteAddress)) return remoteAddress;
  const forwarded = sender.headers("forwarded");
  const forwardedFor = sender.headers("x-forwarded-for");
  const found = [];
  if (forwarded.length > 0) {
    const hops = forwardedHops(forwarded.join(","));
    found.push(hops ? nearest(remoteAddress, hops, proxies) : UNKNOWN_ADDRESS);
  }
  if (forwardedFor.length > 0) {
    found.push(nearest(remoteAddress, forwardedFor.join(",").split(","), proxies));
  }
  const [address = remoteAddress, other = address] = found;
  return address === other ? address : UNKNOWN_ADDRESS;
}

/** `hops` are in the order of the header: the last one was added by the proxy that connects to us. */
function nearest(remoteAddress: string, hops: readonly (string | undefined)[], proxies: AddressRanges): string {
  let address = remoteAddress;
  for (const hop of hops.toReversed()) {
    const next = hop === undefined ? undefined : addressOf(hop.trim());
    if (next === undefined) return address;
    address = next;
    if (!proxies.has(address)) return address;
  }
  return address;
}

// At each place, only one part of the pattern matches spaces, so the time grows with the length of the header, not with its square.
const PAIR = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:([^\s;,"]+)|"((?:[^"\\]|\\.)*)")[ \t]*)?([;,]|$)/y;

/** The values of "for". Undefined if the header is malformed, because its parts cannot be separated. */
function forwardedHops(header: string): (string | undefined)[] | undefined {
  const hops: (string | undefined)[] = [undefined];
  PAIR.lastIndex = 0;
  for (;;) {
    const match = PAIR.exec(header);
    if (!match) return undefined;
    const [, name, token, quoted, separator] = match;
    if (name?.toLowerCase() === "for") hops[hops.length - 1] = token ?? quoted?.replace(/\\(.)/g, "$1");
    if (separator === "") return hops;
    if (separator === ",") hops.push(undefined);
  }
}

/** An address with or without a port, in brackets if it is an IPv6 address with one. */
function addressOf(hop: string): string | undefined {
  if (isIP(hop) !== 0) return plainAddress(hop);
  const [, v6, v4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/.exec(hop) ?? [];
  if (v6 !== undefined && isIPv6(v6)) return plainAddress(v6);
  return v4 !== undefined && isIPv4(v4) ? v4 : undefined;
}
