import type { IncomingHttpHeaders } from "node:http";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, type ContextValues } from "@connectrpc/connect";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import { DomainError } from "../../domain/errors.ts";
import type { HttpRequest, HttpResponse } from "../http/message.ts";
import { connectTimeoutMs, grpcTimeoutMs } from "../rpc/direct-form.ts";
import { isKnownEncoding, type RpcForm } from "../rpc/wire.ts";

/** A request in the form that Connect's handlers take. */
export function universalRequest(
  request: HttpRequest,
  header: Headers,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  contextValues?: ContextValues,
): UniversalServerRequest {
  return {
    httpVersion: request.httpVersion,
    method: request.method ?? "",
    url: urlOf(request),
    header,
    body,
    signal,
    ...(contextValues && { contextValues }),
  };
}

/** Connect returns "internal error" for a message in the query that is not base64. */
export function checkQueryMessage(request: HttpRequest): void {
  const { searchParams } = new URL(urlOf(request));
  if (searchParams.get("base64") !== "1") return;
  try {
    base64Decode(searchParams.get("message") ?? "");
  } catch (cause) {
    throw new DomainError("invalid_argument", {
      message: 'The parameter "message" of the query is not valid base64.',
      cause,
    });
  }
}

/** Only the query is read. The Host header is caller input and may be anything. */
function urlOf(request: HttpRequest): string {
  return `http://vx${request.url}`;
}

/** The headers of a request whose message is decoded: without those that describe the bytes that were sent. */
export function decodedHeaders(request: HttpRequest, elapsedMs: number): Headers {
  const headers = webHeaders(request, elapsedMs);
  headers.delete("content-length");
  if (isKnownEncoding(request.headers["content-encoding"])) headers.delete("content-encoding");
  return headers;
}

export function webHeaders(request: HttpRequest, elapsedMs: number): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    if (typeof value === "string") headers.append(name, value);
    else for (const item of value) headers.append(name, item);
  }
  updateDeadline(headers, elapsedMs);
  return headers;
}

/** Aborted if the response closes before it is complete. */
export function abortOnClose(response: HttpResponse): AbortController {
  const aborted = new AbortController();
  response.once("close", () => {
    // Over HTTP/2 "writableFinished" is also true for an incomplete response.
    if (!response.writableEnded) aborted.abort(new ConnectError("the caller disconnected", Code.Canceled));
  });
  return aborted;
}

/** The deadline of a call; undefined if it has none or an invalid one. */
export function timeoutMsOf(headers: IncomingHttpHeaders, protocol: RpcForm["protocol"]): number | undefined {
  return protocol === "connect"
    ? connectTimeoutMs(String(headers["connect-timeout-ms"] ?? ""))
    : grpcTimeoutMs(String(headers["grpc-timeout"] ?? ""));
}

/**
 * Replaces a deadline by its remaining time: Connect starts counting when it gets the call, which is after the
 * request was read. An invalid deadline is unchanged, and Connect refuses it.
 */
export function updateDeadline(headers: Headers, elapsedMs: number): void {
  const grpcMs = grpcTimeoutMs(headers.get("grpc-timeout") ?? "");
  if (grpcMs !== undefined) headers.set("grpc-timeout", `${remainingMs(grpcMs, elapsedMs)}m`);
  const connectMs = connectTimeoutMs(headers.get("connect-timeout-ms") ?? "");
  if (connectMs !== undefined) headers.set("connect-timeout-ms", String(remainingMs(connectMs, elapsedMs)));
}

function remainingMs(givenMs: number, elapsedMs: number): number {
  return Math.max(0, Math.ceil(givenMs - elapsedMs));
}

/** The form of a request that Connect serves. */
export function rpcFormOf({ headers }: HttpRequest): RpcForm {
  const type = (headers["content-type"] ?? "").toLowerCase();
  const isJson = /^[^;]*json/.test(type);
  if (type.startsWith("application/grpc")) {
    const protocol = type.startsWith("application/grpc-web") ? "grpc-web" : "grpc";
    return { protocol, isJson, isEnveloped: true, encodingHeader: "grpc-encoding" };
  }
  if (type.startsWith("application/connect"))
    return { protocol: "connect", isJson, isEnveloped: true, encodingHeader: "connect-content-encoding" };
  return { protocol: "connect", isJson, isEnveloped: false, encodingHeader: "content-encoding" };
}
