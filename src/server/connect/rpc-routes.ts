import type { Message } from "@bufbuild/protobuf";
import {
  ConnectError,
  type ConnectRouter,
  type ContextKey,
  type ContextValues,
  createConnectRouter,
  createContextKey,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { BodyShare } from "../../codec/body-budget.ts";
import { Readers } from "../../codec/json/reader.ts";
import { DomainError } from "../../domain/errors.ts";
import { SMALL_BODY_BYTES } from "../../rules/limits.ts";
import { toConnectError } from "../errors/connect-error.ts";
import { sendRpcRefusal, setErrorHeaders } from "../errors/refusal.ts";
import type { Admitted } from "../gate/gate.ts";
import type { HttpRequest, HttpResponse } from "../http/message.ts";
import type { IncomingCall } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { type RpcMethod, type RpcMethodOptions, rpcMethodOf } from "../rpc/rpc-method.ts";
import { acceptCompression } from "../rpc/wire.ts";

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
    // Runs before Connect reads anything: a call that already failed gets its error in the format of its protocol.
    requestGate: (context) => void rpcCallOf(context.values),
  });
  options.routes(router);
  // Connect callers may send fields of a later version, as gRPC callers may.
  const readers = new Readers("ignore");
  return router.handlers.map((handler) => ({ ...rpcMethodOf(handler.method, readers, options), handler }));
}

/** Refuses, in the format of the caller's protocol, a request that Connect cannot handle. */
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

/** A call that passed the gate and whose request is read. Connect passes it on to the service. */
export type RpcCall = {
  readonly call: IncomingCall;
  readonly admitted: Admitted;
  /** Undefined if Connect decodes the request itself: the query of a GET. */
  readonly message: Message | undefined;
  readonly response: HttpResponse;
  readonly observation: Observation;
  readonly share: BodyShare;
};

/** The context key of the call, or of the error that ends it before its service. */
export const rpcCallKey: ContextKey<RpcCall | ConnectError | undefined> = createContextKey<
  RpcCall | ConnectError | undefined
>(undefined);

/** The call of a service; throws the error that ends the call. */
export function rpcCallOf(values: ContextValues): RpcCall {
  const call = values.get(rpcCallKey);
  if (!call) throw new Error("the call was not created by rpcServer");
  if (call instanceof ConnectError) throw call;
  return call;
}

/** Records a failure and returns the error for the caller. */
export function failRpc(error: unknown, response: HttpResponse, observation: Observation): ConnectError {
  observation.setFailure(error);
  if (error instanceof DomainError && !response.headersSent) setErrorHeaders(response, error);
  return toConnectError(error);
}
