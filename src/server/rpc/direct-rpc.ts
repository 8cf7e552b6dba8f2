import { Readers } from "../../codec/json/reader.ts";
import type { Log } from "../../telemetry/log.ts";
import { ConnectStreamResponse } from "../connect/connect-stream-response.ts";
import { ConnectUnaryResponse } from "../connect/connect-unary-response.ts";
import { GrpcResponse } from "../grpc/grpc-response.ts";
import { GrpcWebResponse } from "../grpc-web/grpc-web-response.ts";
import {
  type HttpRequest,
  type HttpResponse,
  hasValidHost,
  type ServePath,
  type StreamHandler,
} from "../http.ts";
import { requestIdFrom } from "../request-id.ts";
import { type DirectForm, directFormOf } from "./direct-form.ts";
import type { DirectMethod } from "./direct-method.ts";
import { type RpcMethodOptions, rpcMethodOf } from "./rpc-method.ts";
import type { RpcResponse, RpcResponseOptions } from "./rpc-response.ts";
import { type DirectOptions, type DirectRoute, directServer, type ServeDirect } from "./serve-direct.ts";
import { StreamRequest } from "./stream-request.ts";

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
