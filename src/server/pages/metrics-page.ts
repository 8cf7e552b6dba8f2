import { DomainError } from "../../domain/errors.ts";
import { setErrorHeaders } from "../errors/error-headers.ts";
import { errorBody, errorStatus } from "../errors/rest-error-body.ts";
import type { Credentials } from "../gate/authenticate-operator.ts";
import type { ServePath } from "../http.ts";
import { headerValues, send, sendJson } from "../http.ts";
import { remoteAddressOf } from "../raw-socket.ts";

/** The page for Prometheus. */
export function metricsPage(
  authenticate: (request: Credentials) => Promise<unknown>,
  readMetrics: () => Promise<string>,
): ServePath {
  return async (request, response, requestId) => {
    try {
      await authenticate({
        target: request.url ?? "",
        remoteAddress: remoteAddressOf(request),
        headers: (name) => headerValues(request, name),
      });
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      setErrorHeaders(response, error);
      sendJson(response, errorStatus(error), errorBody(error, requestId));
      return;
    }
    send(response, 200, "text/plain; version=0.0.4; charset=utf-8", await readMetrics());
  };
}
