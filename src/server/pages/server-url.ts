import type { TLSSocket } from "node:tls";
import type { HttpRequest } from "../http.ts";
import { rawSocketOf } from "../raw-socket.ts";

/** A host name, an IPv4 address or a bracketed IPv6 address, with or without a port; nothing that a shell expands. */
const HOST = /^([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:\d{1,5})?$/i;

/** The address at which the client reached the server. Safe in HTML, JSON and shell commands. */
export function serverUrl(request: HttpRequest): string {
  const host = request.headers[":authority"] ?? request.headers.host;
  const scheme = isSecure(request) ? "https" : "http";
  return `${scheme}://${typeof host === "string" && HOST.test(host) ? host : localAddress(request)}`;
}

/** A proxy that terminates TLS sets the header. It changes only the page of the client that sends it. */
function isSecure(request: HttpRequest): boolean {
  const socket = rawSocketOf(request) as Partial<TLSSocket> | undefined;
  return socket?.encrypted === true || request.headers["x-forwarded-proto"] === "https";
}

function localAddress(request: HttpRequest): string {
  const { localAddress = "127.0.0.1", localPort = 80 } = rawSocketOf(request) ?? {};
  return localAddress.includes(":") ? `[${localAddress}]:${localPort}` : `${localAddress}:${localPort}`;
}
