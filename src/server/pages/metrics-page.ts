import { DomainError } from "../../domain/errors.ts";
import { errorBody, errorStatus } from "../errors/rest-error-body.ts";
import type { OperatorCheck } from "../gate/operator-token.ts";
import type { ServePath } from "../http.ts";
import { headerValues, send, sendJson } from "../http.ts";

/** The page for Prometheus; it requires the operator token. */
export function metricsPage(isOperator: OperatorCheck, readMetrics: () => Promise<string>): ServePath {
  return async (request, response, requestId) => {
    if (!isOperator({ target: request.url ?? "", headers: (name) => headerValues(request, name) })) {
      const error = new DomainError("invalid_operator_token");
      response.setHeader("www-authenticate", "Bearer");
      sendJson(response, errorStatus(error), errorBody(error, requestId));
      return;
    }
    send(response, 200, "text/plain; version=0.0.4; charset=utf-8", await readMetrics());
  };
}
