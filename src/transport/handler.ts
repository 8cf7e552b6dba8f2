import { Code } from "@connectrpc/connect";
import { KEY_PREFIX } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import { asDomainError } from "../interceptors/connect-error.ts";
import type { Log } from "../log.ts";
import { errorBody, errorStatus } from "../rest/error-body.ts";
import {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  hasSaneHost,
  pathOf,
  sendJson,
} from "./http.ts";
import type { Observe } from "./observe.ts";
import type { OpenCalls } from "./open-calls.ts";
import { requestIdFrom } from "./request-id.ts";
import type { ServeRest } from "./rest.ts";
import { checkRpcRequest, createCall, type RpcRoute, serveRpc } from "./rpc.ts";

/** A page or probe outside the API, at its exact path, for GET and HEAD. */
export type Page = (request: HttpRequest, response: HttpResponse, requestId: string) => void | Promise<void>;

type HandlerOptions = {
  readonly routes: ReadonlyMap<string, RpcRoute>;
  readonly pages: ReadonlyMap<string, Page>;
  /** What bounds the routes that need no key. */
  readonly openCalls: OpenCalls;
  /** Serves every path that begins with /v1, known or not; none on the operator listener. */
  readonly rest?: ServeRest;
  readonly observe: Observe;
  readonly drawRequestId: () => string;
  readonly log: Log;
};

/** Where every request of a listener enters. Nothing that comes from outside gets past it as an exception. */
export function createHandler(options: HandlerOptions): HttpHandler {
  return (request, response) => {
    const requestId = requestIdFrom(request.headers["x-request-id"], options.drawRequestId);
    serve(options, request, response, requestId).catch((error: unknown) => {
      if (!response.destroyed) options.log.error({ err: error, request_id: requestId }, "request failed");
      refuse(response, asDomainError(error), requestId);
    });
  };
}

async function serve(
  options: HandlerOptions,
  request: HttpRequest,
  response: HttpResponse,
  requestId: string,
): Promise<void> {
  const path = pathOf(request);
  const hasHost = hasSaneHost(request);
  if (options.rest && hasHost && path !== undefined && (path.startsWith("/v1/") || path === "/v1")) {
    // A call over REST writes its headers itself, all at once.
    await options.rest(request, response, path, requestId);
    return;
  }
  response.setHeader("x-request-id", requestId);
  if (!hasHost) {
    refuse(
      response,
      new DomainError("invalid_argument", { message: "The Host header is not valid." }),
      requestId,
    );
    return;
  }
  const route = path === undefined ? undefined : options.routes.get(path);
  if (route) {
    await serveRoute(options, route, request, response, requestId);
    return;
  }
  const page = path === undefined ? undefined : options.pages.get(path);
  if (!page) {
    refuseUnknown(request, response, requestId);
  } else if (request.method === "GET" || request.method === "HEAD") {
    await page(request, response, requestId);
  } else {
    response.setHeader("allow", "GET, HEAD");
    refuse(response, new DomainError("method_not_allowed"), requestId);
  }
}

async function serveRoute(
  options: HandlerOptions,
  route: RpcRoute,
  request: HttpRequest,
  response: HttpResponse,
  requestId: string,
): Promise<void> {
  const problem = checkRpcRequest(route, request);
  if (problem) {
    if (problem.reason === "method_not_allowed")
      response.setHeader("allow", route.handler.allowedMethods.join(", "));
    refuse(response, problem, requestId);
    return;
  }
  if (!route.policy) {
    const isStream = route.handler.method.methodKind !== "unary";
    if (options.openCalls.enter(isStream, request, response))
      await serveRpc(route, undefined, request, response);
    else refuseOverloaded(request, response, requestId);
    return;
  }
  const startedAt = performance.now();
  const call = createCall(route, route.policy, request, response, requestId);
  let code: Code | 0 = Code.Canceled;
  try {
    code = await serveRpc(route, call, request, response);
  } finally {
    options.observe(call, code, startedAt);
  }
}

/** Answers in the protocol of the caller where it can be told. */
function refuseUnknown(request: HttpRequest, response: HttpResponse, requestId: string): void {
  const path = pathOf(request) ?? "";
  if (refuseGrpc(request, response, Code.Unimplemented, "there is no such method here")) return;
  // The path is the caller's: it goes back only when it is plain, and never with a key in it.
  const shown = /^[\w./:~-]{1,200}$/.test(path) && !path.includes(KEY_PREFIX) ? ` ${path}` : "";
  refuse(
    response,
    new DomainError("not_found", { message: `There is nothing at${shown || " this address"}.` }),
    requestId,
  );
}

/** Without the machinery of a call: whoever sends very many is refused for next to nothing. */
function refuseOverloaded(request: HttpRequest, response: HttpResponse, requestId: string): void {
  if (!refuseGrpc(request, response, Code.Unavailable, "too many calls without a key are open"))
    refuse(response, new DomainError("overloaded"), requestId);
}

/** Headers alone are a whole answer of gRPC and gRPC-Web. */
function refuseGrpc(request: HttpRequest, response: HttpResponse, code: Code, message: string): boolean {
  const type = request.headers["content-type"];
  if (!type?.startsWith("application/grpc")) return false;
  response.setHeader("content-type", type);
  response.setHeader("grpc-status", String(code));
  response.setHeader("grpc-message", message);
  response.end();
  return true;
}

function refuse(response: HttpResponse, error: DomainError, requestId: string): void {
  sendJson(response, errorStatus(error), errorBody(error, requestId));
}
