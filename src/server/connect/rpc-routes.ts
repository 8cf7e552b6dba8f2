import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { Readers } from "../../codec/json/reader.ts";
import { DomainError } from "../../domain/errors.ts";
import { SMALL_BODY_BYTES } from "../../rules/body-limits.ts";
import { sendRpcRefusal } from "../errors/refusal.ts";
import type { HttpRequest, HttpResponse } from "../http.ts";
import { acceptCompression } from "../rpc/compression.ts";
import { type RpcMethod, type RpcMethodOptions, rpcMethodOf } from "../rpc/rpc-method.ts";
import { rpcCallOf } from "./rpc-call.ts";

/** A method with Connect's handler, which runs the service and encodes its response. */
export type RpcRoute = RpcMethod & { readonly handler: UniversalHandler };

export type RpcRouteOptions = RpcMethodOptions & {
  /** Our own services: every method has a policy and passes the gate. */
  readonly routes: (router: ConnectRouter) => void;
};

export function rpcRoutes(options: RpcRouteOptions): RpcRoute[] {
  const router = createConnectRouter({
    acceptCompression,
    // Connect itself only reads the query of a GET.
    readMaxBytes: SMALL_BODY_BYTES,
    // Runs before Connect reads anything: a call that already failed gets its error in the form of its protocol.
    requestGate: (context) => void rpcCallOf(context.values),
  });
  options.routes(router);
  // Connect callers may send fields of a later version, as gRPC callers may.
  const readers = new Readers("ignore");
  return router.handlers.map((handler) => ({ ...rpcMethodOf(handler.method, readers, options), handler }));
}

/** Refuses, in the form of the caller's protocol, a request that Connect cannot handle. */
export function isRpcRefused(
  handler: UniversalHandler,
  request: HttpRequest,
  response: HttpResponse,
): boolean {
  const problem = requestProblem(handler, request);
  if (!problem) return false;
  if (problem.reason === "method_not_allowed") response.setHeader("allow", handler.allowedMethods.join(", "));
  sendRpcRefusal(request, response, problem);
  return true;
}

/** Connect accepts the base64 form of gRPC-Web here, and refuses it later without saying why. */
function isSupported(handler: UniversalHandler, type: string | undefined): boolean {
  return (
    type !== undefined && !/^application\/grpc-web-text\b/i.test(type) && handler.supportedContentType(type)
  );
}

function requestProblem(handler: UniversalHandler, request: HttpRequest): DomainError | undefined {
  const verb = request.method ?? "";
  if (!handler.allowedMethods.includes(verb)) {
    return new DomainError("method_not_allowed", {
      message: `${handler.requestPath} does not support ${verb}. Use ${handler.allowedMethods.join(" or ")}.`,
    });
  }
  const type = request.headers["content-type"];
  if (verb === "POST" && !isSupported(handler, type)) {
    return new DomainError("unsupported_media_type", {
      message:
        "Send application/json or application/proto for Connect, application/grpc for gRPC, application/grpc-web for gRPC-Web; the base64 form application/grpc-web-text is not supported.",
    });
  }
  return undefined;
}
