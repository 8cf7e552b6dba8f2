import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { type Reader, Readers } from "../../codec/json/reader.ts";
import { DomainError } from "../../domain/errors.ts";
import { maxBodyBytesOf, SMALL_BODY_BYTES } from "../../rules/body-limits.ts";
import { type Policy, PolicyError } from "../../rules/policy.ts";
import { sendRpcRefusal } from "../errors/refusal.ts";
import type { HttpRequest, HttpResponse } from "../http.ts";
import { acceptCompression } from "./compression.ts";
import { rpcCallOf } from "./rpc-call.ts";

/** A method at its path, with everything that can be prepared before the first call. */
export type RpcRoute = {
  /** "vx.v1.MeService/GetMe" */
  readonly rpc: string;
  readonly method: DescMethod;
  readonly policy: Policy;
  readonly maxBodyBytes: number;
  readonly readJson: Reader;
  /** Connect's handler: runs the service and encodes its response. */
  readonly handler: UniversalHandler;
};

export type RpcRouteOptions = {
  /** Our own services: every method has a policy and passes the gate. */
  readonly routes: (router: ConnectRouter) => void;
  readonly policies: ReadonlyMap<DescMethod, Policy>;
  /** The configured limit; a method whose rules allow less has a lower one. */
  readonly maxBodyBytes: number;
};

export function rpcRoutes({ routes, policies, maxBodyBytes }: RpcRouteOptions): RpcRoute[] {
  const router = createConnectRouter({
    acceptCompression,
    // Connect itself only reads the query of a GET.
    readMaxBytes: SMALL_BODY_BYTES,
    // Runs before Connect reads anything: a call that already failed gets its error in the form of its protocol.
    requestGate: (context) => void rpcCallOf(context.values),
  });
  routes(router);
  // Connect callers may send fields of a later version, as gRPC callers may.
  const readers = new Readers("ignore");
  return router.handlers.map((handler) => {
    const { method, requestPath } = handler;
    const policy = policies.get(method);
    if (!policy) throw new PolicyError(`${requestPath} is served but has no policy`);
    return {
      rpc: requestPath.slice(1),
      method,
      policy,
      maxBodyBytes: maxBodyBytesOf(method.input, maxBodyBytes),
      readJson: readers.of(method.input),
      handler,
    };
  });
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

function requestProblem(handler: UniversalHandler, request: HttpRequest): DomainError | undefined {
  const verb = request.method ?? "";
  if (!handler.allowedMethods.includes(verb)) {
    return new DomainError("method_not_allowed", {
      message: `${handler.requestPath} does not support ${verb}. Use ${handler.allowedMethods.join(" or ")}.`,
    });
  }
  const type = request.headers["content-type"];
  if (verb === "POST" && (type === undefined || !handler.supportedContentType(type))) {
    return new DomainError("unsupported_media_type", {
      message:
        "Send application/json or application/proto for Connect, application/grpc for gRPC, application/grpc-web for gRPC-Web.",
    });
  }
  return undefined;
}
