import { Code } from "@connectrpc/connect";
import { KEY_PREFIX } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { checkRpcRequest, createCall, type RpcRoute, serveRpc } from "./connect/rpc.ts";
import { asDomainError } from "./errors/connect-error.ts";
import { refuse, refuseRpc } from "./errors/refusal.ts";
import type { OpenCalls } from "./flood/open-calls.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, hasSaneHost, pathOf } from "./http.ts";
import type { Observe } from "./observe.ts";
import { requestIdFrom } from "./request-id.ts";
import type { ServeRest } from "./rest/rest.ts";

/** A page or probe outside the API, at its exact path, for GET and HEAD. */
export type Page = (request: HttpRequest, response: HttpResponse, requestId: string) => void | Promise<void>;

type HandlerOptions = {
  readonly routes: ReadonlyMap<string, RpcRoute>;
  readonly pages: ReadonlyMap<string, Page>;
  /** Limits the calls to routes that need no key. */
  readonly openCalls: OpenCalls;
  /** Serves every path under /v1, known or not; undefined on the operator listener. */
  readonly rest?: ServeRest;
  readonly observe: Observe;
  readonly drawRequestId: () => string;
  readonly log: Log;
};

/** The entry point of every request of a listener. Every exception becomes an error response. */
export function createHandler(options: HandlerOptions): HttpHandler {
  return (request, response) => {
    const requestId = requestIdFrom(request.headers["x-request-id"], options.drawRequestId);
    serve(options, request, response, requestId).catch((error: unknown) => {
      if (!response.destroyed) options.log.error({ err: error, request_id: requestId }, "request failed");
      refuse(request, response, asDomainError(error), requestId);
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
    // A REST call writes all its headers itself, at once.
    await options.rest(request, response, path, requestId);
    return;
  }
  response.setHeader("x-request-id", requestId);
  if (!hasHost) {
    const problem = new DomainError("invalid_argument", { message: "The Host header is not valid." });
    refuse(request, response, problem, requestId);
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
    refuse(request, response, new DomainError("method_not_allowed"), requestId);
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
    refuseRpc(request, response, problem);
    return;
  }
  if (!route.policy) {
    const isStream = route.handler.method.methodKind !== "unary";
    if (options.openCalls.enter(isStream, request, response))
      await serveRpc(route, undefined, request, response);
    else refuseRpc(request, response, new DomainError("overloaded"));
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

function refuseUnknown(request: HttpRequest, response: HttpResponse, requestId: string): void {
  const path = pathOf(request) ?? "";
  // The path is caller input: it is repeated only if it is plain, and never if it contains a key.
  const shown = /^[\w./:~-]{1,200}$/.test(path) && !path.includes(KEY_PREFIX) ? ` ${path}` : "";
  const message = `There is nothing at${shown || " this address"}.`;
  refuse(request, response, new DomainError("not_found", { message }), requestId);
}
