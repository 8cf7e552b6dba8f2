import type { ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Log } from "../telemetry/log.ts";
import { hasValidHost, requestIdFrom, type ServePath, type StreamHandler } from "./http/message.ts";
import type { Serve } from "./interceptors/interceptor.ts";
import { ConnectUnaryCall } from "./wire/connect.ts";
import { commonFormatOf } from "./wire/formats.ts";
import { FramedCall } from "./wire/framed.ts";
import { GrpcCall } from "./wire/grpc.ts";
import { type RpcMethod, timeoutMsOf } from "./wire/rpc.ts";

type DirectRpcOptions = {
  readonly serve: Serve;
  readonly methods: readonly RpcMethod[];
  readonly newRequestId: () => string;
  readonly log: Log;
};

type DirectRpcs = {
  /** The paths of the fallback; their calls over gRPC-Web and Connect are served here if they have a common format. */
  readonly rpcs: ReadonlyMap<string, ServePath>;
  /** The same for gRPC: the fallback serves calls whose stream is not taken. */
  readonly serveStream: StreamHandler;
};

/**
 * Serves the common formats of calls without Connect: unary and server-streaming methods in a usual content type with a known
 * compression and a valid deadline. The fallback, connectRpcs(), serves all others.
 */
export function directRpcs(
  { serve, methods, newRequestId, log }: DirectRpcOptions,
  fallback: ReadonlyMap<string, ServePath>,
): DirectRpcs {
  const byPath = new Map(methods.map((method) => [`/${method.rpc}`, method]));
  const rpcs = new Map(fallback);
  for (const [path, method] of byPath) {
    const other = fallback.get(path);
    if (!other) throw new Error(`${path} has no fallback`);
    rpcs.set(path, (request, response, requestId) => {
      const format = commonFormatOf(request.headers, request.method, method.isStream);
      if (!format || format.protocol === "grpc") return other(request, response, requestId);
      const timeoutMs = timeoutMsOf(format, request.headers);
      if (Number.isNaN(timeoutMs)) return other(request, response, requestId);
      const Served = format.isEnveloped ? FramedCall : ConnectUnaryCall;
      // TypeScript cannot call the methods of the union: the two response types declare them differently.
      return serve(new Served(method, format, request, response as ServerResponse, requestId, timeoutMs));
    });
  }
  const serveStream: StreamHandler = (stream, headers, rawHeaders) => {
    const method = byPath.get(headers[":path"] ?? "");
    const format = method && commonFormatOf(headers, headers[":method"], method.isStream);
    if (!method || format?.protocol !== "grpc") return false;
    // Rare in calls over gRPC: pages of other origins, expectations.
    if (headers.origin !== undefined || headers.expect !== undefined) return false;
    if (!hasValidHost({ headers, httpVersion: "2.0" })) return false;
    const timeoutMs = timeoutMsOf(format, headers);
    if (Number.isNaN(timeoutMs)) return false;
    const requestId = requestIdFrom(headers["x-request-id"], newRequestId);
    const request = new StreamRequest(stream, headers, rawHeaders);
    serve(new GrpcCall(method, format, request, stream, requestId, timeoutMs)).catch((error: unknown) => {
      log.error({ err: error, request_id: requestId }, "request failed");
      stream.destroy();
    });
    return true;
  };
  return { rpcs, serveStream };
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
