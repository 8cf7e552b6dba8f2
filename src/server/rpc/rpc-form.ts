import type { HttpRequest } from "../http.ts";
import type { Protocol } from "../incoming-call.ts";

/** The form of a request, from its content type. */
export type RpcForm = {
  readonly protocol: Exclude<Protocol, "rest">;
  readonly isJson: boolean;
  /** Whether messages are framed: in gRPC, gRPC-Web and streams of Connect. */
  readonly isEnveloped: boolean;
  /** The request header that names the compression of messages. */
  readonly encodingHeader: "grpc-encoding" | "connect-content-encoding" | "content-encoding";
};

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
