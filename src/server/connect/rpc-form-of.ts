import type { HttpRequest } from "../http.ts";
import type { RpcForm } from "../rpc/rpc-form.ts";

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
