import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RequestHead } from "./http.ts";

/** The HTTP servers get a stream over the socket; its addresses and TLS state are those of the socket. */
const sockets = new WeakMap<Duplex | Http2Session, Socket>();

/** The connection is an HTTP/2 session, or the stream that an HTTP/1.1 server gets. */
export function setRawSocket(connection: Duplex | Http2Session, socket: Socket): void {
  sockets.set(connection, socket);
}

/** Undefined if the connection is already closed. */
export function rawSocketOf(request: RequestHead): Socket | undefined {
  const connection = "stream" in request ? request.stream.session : request.socket;
  return connection && sockets.get(connection);
}

/** Empty if the connection is already closed. */
export function remoteAddressOf(request: RequestHead): string {
  return rawSocketOf(request)?.remoteAddress ?? "";
}
