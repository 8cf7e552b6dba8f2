import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { Readers } from "../../codec/json/reader.ts";
import type { Log } from "../../telemetry/log.ts";
import {
  type HttpRequest,
  type HttpResponse,
  hasValidHost,
  requestIdFrom,
  type ServePath,
  type StreamHandler,
} from "../http/message.ts";
import { type DirectForm, directFormOf } from "./direct-form.ts";
import type { DirectMethod } from "./direct-method.ts";
import { type RpcMethodOptions, rpcMethodOf } from "./rpc-method.ts";
import {
  ConnectStreamResponse,
  ConnectUnaryResponse,
  GrpcResponse,
  GrpcWebResponse,
  type RpcResponse,
  type RpcResponseOptions,
} from "./rpc-response.ts";
import { type DirectOptions, type DirectRoute, directServer, type ServeDirect } from "./serve-direct.ts";

type DirectRpcOptions = RpcMethodOptions &
  DirectOptions & {
    readonly methods: readonly DirectMethod[];
    readonly newRequestId: () => string;
    readonly log: Log;
  };

type DirectRpcs = {
  /** The paths of the fallback; their calls over gRPC-Web and Connect are served here if they have a common form. */
  readonly rpcs: ReadonlyMap<string, ServePath>;
  /** The same for gRPC: the fallback serves calls whose stream is not taken. */
  readonly serveStream: StreamHandler;
};

/**
 * Serves the common forms of calls without Connect: unary and server-streaming methods in a usual content type with a known
 * compression. The fallback, rpcServer(), serves all others.
 */
export function directRpcServer(
  options: DirectRpcOptions,
  fallback: ReadonlyMap<string, ServePath>,
): DirectRpcs {
  const serve = directServer(options);
  // Callers may send fields of a later version.
  const readers = new Readers("ignore");
  const routes = new Map<string, DirectRoute>();
  for (const method of options.methods) {
    const route = { ...rpcMethodOf(method.method, readers, options), ...method };
    routes.set(`/${route.rpc}`, route);
  }
  const rpcs = new Map(fallback);
  for (const [path, route] of routes) {
    const other = fallback.get(path);
    if (!other) throw new Error(`${path} has no fallback`);
    rpcs.set(path, (request, response, requestId) => {
      const form = directFormOf(request.headers, request.method, route.method);
      if (!form || form.protocol === "grpc") return other(request, response, requestId);
      return serve(route, form, request, requestId, (head) => openResponse(form, request, response, head));
    });
  }
  return { rpcs, serveStream: streamHandler(options, routes, serve) };
}

function openResponse(
  form: DirectForm,
  request: HttpRequest,
  response: HttpResponse,
  options: RpcResponseOptions,
): RpcResponse {
  if (form.protocol === "grpc-web") return new GrpcWebResponse(request, response, options);
  return form.isEnveloped
    ? new ConnectStreamResponse(request, response, options)
    : new ConnectUnaryResponse(request, response, options);
}

function streamHandler(
  { newRequestId, log }: DirectRpcOptions,
  routes: ReadonlyMap<string, DirectRoute>,
  serve: ServeDirect,
): StreamHandler {
  return (stream, headers, rawHeaders) => {
    const route = routes.get(headers[":path"] ?? "");
    const form = route && directFormOf(headers, headers[":method"], route.method);
    if (!route || form?.protocol !== "grpc") return false;
    // Rare in calls over gRPC: pages of other origins, expectations.
    if (headers.origin !== undefined || headers.expect !== undefined) return false;
    if (!hasValidHost({ headers, httpVersion: "2.0" })) return false;
    const requestId = requestIdFrom(headers["x-request-id"], newRequestId);
    const request = new StreamRequest(stream, headers, rawHeaders);
    serve(route, form, request, requestId, (options) => new GrpcResponse(stream, options)).catch(
      (error: unknown) => {
        log.error({ err: error, request_id: requestId }, "request failed");
        stream.destroy();
      },
    );
    return true;
  };
}

/** The request of an HTTP/2 stream, with the members that calls and bodies use of a request of node:http. */
class StreamRequest {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[]) {
    this.stream = stream;
    this.headers = headers;
    this.rawHeaders = rawHeaders;
  }

  get url(): string {
    return this.headers[":path"] ?? "";
  }

  get aborted(): boolean {
    return this.stream.aborted;
  }

  get destroyed(): boolean {
    return this.stream.destroyed;
  }

  get readableEnded(): boolean {
    return this.stream.readableEnded;
  }

  on(event: string, listener: (chunk: Buffer) => void): void {
    this.stream.on(event, listener);
  }

  pause(): void {
    this.stream.pause();
  }
}
