import type { HttpRequest, HttpResponse } from "../http/message.ts";
import type { CallServer } from "../serve-call.ts";
import { KEEP_ALIVE_MS, RestExchange } from "../wire/rest.ts";
import {
  correctionOf,
  findRestRoute,
  type RestRouteOptions,
  type RestService,
  restRoutes,
} from "./rest-routes.ts";

type RestOptions = RestRouteOptions & {
  readonly calls: CallServer;
  readonly services: readonly RestService[];
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

/** REST directly on node:http and node:http2. */
export function restServer(options: RestOptions): RestServer {
  const { calls, keepAliveMs = KEEP_ALIVE_MS } = options;
  const routes = restRoutes(options.services, options);
  const above = ["/v1", ...routes.basePaths];
  return {
    serve: (request, response, path, requestId) => {
      const match = findRestRoute(routes, request.method ?? "", path, request.headers);
      return calls.serve(new RestExchange(match, request, response, requestId, keepAliveMs));
    },
    serves: (path) =>
      above.some(
        (start) => path.startsWith(start) && (path.length === start.length || path[start.length] === "/"),
      ),
    correctionOf: (path) => correctionOf(routes, path),
  };
}
