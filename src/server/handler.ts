import { DomainError } from "../domain/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { ensureDomainError } from "./errors/connect-error.ts";
import { sendError } from "./errors/http-error.ts";
import { answerPreflight, type Cors, isPreflight } from "./http/cors.ts";
import {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  hasValidHost,
  isClosed,
  pathOf,
  requestIdFrom,
  type ServePath,
  stopBody,
} from "./http/message.ts";
import { describeNoRoute } from "./rest/rest-routes.ts";
import { sendRefusal } from "./wire/refusal.ts";
import type { RestServer } from "./wire/rest.ts";

type HandlerOptions = {
  /** Serves every path under /v1 and the second addresses, known or not; undefined on the operator listener. */
  readonly rest?: RestServer;
  /** gRPC, gRPC-Web and Connect, by path. */
  readonly rpcs: ReadonlyMap<string, ServePath>;
  /** Pages and probes outside the API, by path, for GET and HEAD. */
  readonly pages: ReadonlyMap<string, ServePath>;
  /** Paths outside the API that take only a POST. */
  readonly posts?: ReadonlyMap<string, ServePath>;
  /** Undefined on the operator listener: pages of other origins never read its responses. */
  readonly cors?: Cors;
  readonly newRequestId: () => string;
  readonly log: Log;
};

/** The entry point of every request of a listener. Every exception becomes an error response. */
export function createHandler(options: HandlerOptions): HttpHandler {
  return (request, response) => {
    const requestId = requestIdFrom(request.headers["x-request-id"], options.newRequestId);
    const fail = (error: unknown) => {
      if (!isClosed(response)) options.log.error({ err: error, request_id: requestId }, "request failed");
      if (!response.headersSent) response.setHeader("x-request-id", requestId);
      sendRefusal(request, response, ensureDomainError(error), requestId);
    };
    try {
      serve(options, request, response, requestId)?.catch(fail);
    } catch (error) {
      fail(error);
    }
  };
}

function serve(
  { rest, rpcs, pages, posts, cors }: HandlerOptions,
  request: HttpRequest,
  response: HttpResponse,
  requestId: string,
): Promise<void> | void {
  const path = pathOf(request) ?? "";
  const isHostValid = hasValidHost(request);
  // Only browsers send an origin.
  const isOriginAllowed = request.headers.origin !== undefined && cors?.setHeaders(request, response) === true;
  if (isOriginAllowed && isHostValid && isPreflight(request)) {
    answerPreflight(response, requestId);
    return;
  }
  // Calls write all their headers themselves, at once.
  if (rest && isHostValid && rest.serves(path)) {
    return rest.serve(request, response, path, requestId);
  }
  const serveRpc = isHostValid ? rpcs.get(path) : undefined;
  if (serveRpc) return serveRpc(request, response, requestId);
  response.setHeader("x-request-id", requestId);
  if (!isHostValid) {
    const problem = new DomainError("invalid_argument", { message: "The Host header is not valid." });
    sendRefusal(request, response, problem, requestId);
    return;
  }
  const servePost = posts?.get(path);
  const servePath = servePost ?? pages.get(path);
  const methods = servePost ? ["POST"] : ["GET", "HEAD"];
  if (!servePath) {
    const message = describeNoRoute(path, rest?.correctionOf(path) ?? "");
    sendRefusal(request, response, new DomainError("not_found", { message }), requestId);
  } else if (methods.includes(request.method ?? "")) {
    return answer(servePath, request, response, requestId);
  } else {
    response.setHeader("allow", methods.join(", "));
    sendRefusal(request, response, new DomainError("method_not_allowed"), requestId);
  }
}

/** An error of a page is its response. A bug is logged by the handler. */
async function answer(serve: ServePath, request: HttpRequest, response: HttpResponse, requestId: string): Promise<void> {
  try {
    await serve(request, response, requestId);
  } catch (error) {
    sendError(response, error, requestId);
    stopBody(request, response);
  }
}
