import type { ServerResponse } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { CallerDisconnected } from "../../codec/body.ts";
import { DomainError } from "../../domain/errors.ts";
import { type HttpRequest, type HttpResponse, isClosed, untilWritable } from "../http/message.ts";
import { encodeGrpcMessage } from "../wire/grpc.ts";
import { sendRpcRefusal } from "../wire/refusal.ts";

export function setRpcHeaders(response: HttpResponse, requestId: string): void {
  response.setHeader("x-request-id", requestId);
  response.setHeader("cache-control", "no-store");
}

/** Refuses, in the format of the caller's protocol, a request that Connect cannot handle. */
export function isRpcRefused(handler: UniversalHandler, request: HttpRequest, response: HttpResponse): boolean {
  const problem = requestProblem(handler, request);
  if (!problem) return false;
  if (problem.reason === "method_not_allowed") response.setHeader("allow", verbsOf(handler).join(", "));
  sendRpcRefusal(request, response, problem);
  return true;
}

/** Connect accepts the base64 form of gRPC-Web here, and refuses it later without saying why. */
function isSupported(handler: UniversalHandler, type: string | undefined): boolean {
  return type !== undefined && !/^application\/grpc-web-text\b/i.test(type) && handler.supportedContentType(type);
}

/** Connect's handlers list GET also for streams without side effects, but cannot answer it. */
function verbsOf({ method, allowedMethods }: UniversalHandler): readonly string[] {
  return method.methodKind === "unary" ? allowedMethods : ["POST"];
}

function connectTypes({ method }: UniversalHandler): string {
  return method.methodKind === "unary"
    ? "application/json or application/proto"
    : "application/connect+json or application/connect+proto, with each message in an envelope,";
}

function requestProblem(handler: UniversalHandler, request: HttpRequest): DomainError | undefined {
  const verb = request.method ?? "";
  const verbs = verbsOf(handler);
  if (!verbs.includes(verb)) {
    return new DomainError("method_not_allowed", {
      message: `${handler.requestPath} does not support ${verb}. Use ${verbs.join(" or ")}.`,
    });
  }
  const type = request.headers["content-type"];
  if (verb === "POST" && !isSupported(handler, type)) {
    return new DomainError("unsupported_media_type", {
      message: `Send ${connectTypes(handler)} for Connect, application/grpc for gRPC, application/grpc-web for gRPC-Web; the base64 form application/grpc-web-text is not supported.`,
    });
  }
  return undefined;
}

/** A request in the form that Connect's handlers take. */
export function universalRequest(
  request: HttpRequest,
  header: Headers,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): UniversalServerRequest {
  return {
    httpVersion: request.httpVersion,
    method: request.method ?? "",
    // Only the query is read. The Host header is caller input and may be anything.
    url: `http://vx${request.url}`,
    header,
    body,
    signal,
  };
}

export function webHeaders(request: HttpRequest): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    if (typeof value === "string") headers.append(name, value);
    else for (const item of value) headers.append(name, item);
  }
  return headers;
}

export function abortOnClose(response: HttpResponse): AbortController {
  const aborted = new AbortController();
  response.once("close", () => {
    // Over HTTP/2 "writableFinished" is also true for an incomplete response.
    if (!response.writableEnded) aborted.abort(new ConnectError("the caller disconnected", Code.Canceled));
  });
  return aborted;
}

/** Sends a response of Connect in pieces, with backpressure. Returns its gRPC code. */
export async function writeUniversal(result: UniversalServerResponse, response: HttpResponse): Promise<Code | 0> {
  const pieces = result.body?.[Symbol.asyncIterator]();
  // TypeScript cannot call these methods on the union: the two response types declare them differently.
  const writer = response as ServerResponse;
  try {
    // The first piece is read before the headers are sent: until then a service may set some.
    let piece = await pieces?.next();
    writer.writeHead(result.status, Object.fromEntries(result.header ?? []));
    for (; piece && piece.done !== true; piece = await pieces?.next()) {
      if (isClosed(response)) throw new CallerDisconnected();
      if (!writer.write(piece.value)) await untilWritable(writer);
    }
    if (result.trailer) {
      encodeGrpcMessage(result.trailer);
      response.addTrailers(Object.fromEntries(result.trailer));
    }
    response.end();
    const status = result.trailer?.get("grpc-status") ?? (result.status === 200 ? "0" : Code.Unknown);
    return Number(status) as Code | 0;
  } catch (error) {
    // Pieces throw only if the caller disconnected; errors of the service are sent inside them.
    response.destroy();
    await pieces?.return?.();
    throw error;
  }
}
