import type { Code } from "@connectrpc/connect";
import { CallerDisconnected } from "../../codec/body.ts";
import type { BodyBudget } from "../../codec/body-budget.ts";
import { inTurnsOf } from "../../domain/next-turn.ts";
import type { Policy } from "../../rules/policy.ts";
import { validateRequest } from "../../rules/validate.ts";
import type { Admitted, Gate } from "../gate/gate.ts";
import { passGate } from "../gate/pass-gate.ts";
import { type HttpRequest, type HttpResponse, stopBody } from "../http/message.ts";
import { HttpCall, type IncomingCall } from "../incoming-call.ts";
import type { Observation, Observe } from "../observation.ts";
import { RunningCalls, ServiceCall } from "../service-call.ts";
import { readRestRequest } from "./read-rest-request.ts";
import {
  KEEP_ALIVE_MS,
  RestResponse,
  respondOnce,
  respondWithError,
  respondWithoutRoute,
  respondWithStream,
} from "./respond-rest.ts";
import {
  correctionOf,
  findRestRoute,
  type RestRouteOptions,
  type RestService,
  type RouteMatch,
  restRoutes,
} from "./rest-routes.ts";

type RestOptions = RestRouteOptions & {
  readonly services: readonly RestService[];
  readonly gate: Gate;
  readonly budget: BodyBudget;
  /** Aborts the calls that are still running at the end of a drain. */
  readonly shutdownSignal: AbortSignal;
  readonly observe: Observe;
  readonly keepAliveMs?: number;
};

export type RestServer = {
  /** Whether REST serves the path, known or not. */
  readonly serves: (path: string) => boolean;
  readonly serve: (
    request: HttpRequest,
    response: HttpResponse,
    path: string,
    requestId: string,
  ) => Promise<void>;
  /** What to add to the refusal of a path that no one serves. */
  readonly correctionOf: (path: string) => string;
};

/** Unknown addresses also require a key: a caller without one cannot find out which routes exist. */
const NO_ROUTE: Policy = {
  access: "developer",
  scope: undefined,
  role: undefined,
  rateLimited: false,
  metered: false,
  whileSuspended: true,
};

/**
 * REST directly on node:http and node:http2, with the same gate, rules and services as the other protocols.
 */
export function restServer(options: RestOptions): RestServer {
  const routes = restRoutes(options.services, options);
  const running = new RunningCalls(options.shutdownSignal);
  const serve: RestServer["serve"] = (request, httpResponse, path, requestId) => {
    const hasHeader = (name: string) => request.headers[name] !== undefined;
    const match = findRestRoute(routes, request.method ?? "", path, hasHeader);
    const first = match.route?.first;
    // Without a route the body is not read, so its size does not matter.
    const maxBodyBytes = first?.maxBodyBytes ?? Number.POSITIVE_INFINITY;
    const call = new HttpCall(
      "rest",
      first?.policy ?? NO_ROUTE,
      maxBodyBytes,
      request,
      requestId,
      match.form.acceptsKeyHeader,
    );
    const observation = options.observe(call, first?.rpc ?? "none", first?.binding);
    const response = new RestResponse(httpResponse, requestId, match.form);
    const slot = running.insert(response);
    const end = (code: Code | 0) => {
      running.remove(slot);
      observation.end(code);
    };
    const succeed = () => {
      if (response.abortError) observation.setFailure(response.abortError);
      end(0);
    };
    const fail = (error: unknown) => {
      let code: Code | 0 = 0;
      try {
        stopBody(request, httpResponse);
        if (response.abortError) observation.setFailure(response.abortError);
        code = respondWithError(error, response, observation);
      } finally {
        end(code);
      }
    };
    return serveCall(options, match, call, request, response, observation).then(succeed, fail);
  };
  const above = ["/v1", ...routes.basePaths];
  return {
    serve,
    serves: (path) =>
      above.some(
        (start) => path.startsWith(start) && (path.length === start.length || path[start.length] === "/"),
      ),
    correctionOf: (path) => correctionOf(routes, path),
  };
}

/** Gate, read, validate, invoke, respond. Throws what the caller gets as an error. */
async function serveCall(
  options: RestOptions,
  match: RouteMatch,
  call: IncomingCall,
  request: HttpRequest,
  response: RestResponse,
  observation: Observation,
): Promise<void> {
  const admitted = await passGate(options.gate, call, response, observation);
  await inTurnsOf(admitted.key?.accountId, () =>
    serveAdmitted(options, match, call, request, response, observation, admitted),
  );
}

async function serveAdmitted(
  options: RestOptions,
  match: RouteMatch,
  call: IncomingCall,
  request: HttpRequest,
  response: RestResponse,
  observation: Observation,
  admitted: Admitted,
): Promise<void> {
  const { route, segments } = match;
  if (!route) {
    respondWithoutRoute(request.method ?? "", match, response);
    return;
  }
  const share = options.budget.openShare(admitted.key?.accountId);
  try {
    const limits = { maxBytes: call.maxBodyBytes, share };
    const { endpoint, message } = await readRestRequest(route, segments, queryOf(request), request, limits);
    observation.setRpc(endpoint.rpc);
    validateRequest(endpoint.method.input, message);
    const result = endpoint.invoke(
      message,
      new ServiceCall(endpoint.rpc, call, admitted, response, observation, share),
    );
    if (endpoint.method.methodKind === "unary") {
      const compressing = respondOnce(endpoint, await result, call, response);
      if (compressing !== undefined) await compressing;
    } else {
      await respondWithStream(endpoint, result, call, response, options.keepAliveMs ?? KEEP_ALIVE_MS);
    }
  } finally {
    share.release();
  }
  if (!response.headersSent) throw new CallerDisconnected();
}

function queryOf(request: HttpRequest): string {
  const target = request.url ?? "";
  const start = target.indexOf("?");
  return start < 0 ? "" : target.slice(start + 1);
}
