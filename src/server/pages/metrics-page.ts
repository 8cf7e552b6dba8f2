import { sendError } from "../errors/send-error.ts";
import type { Credentials } from "../gate/bearer.ts";
import type { ServePath } from "../http.ts";
import { send } from "../http.ts";
import { credentialsOf } from "../incoming-call.ts";

/** The page for Prometheus. */
export function metricsPage(
  authenticate: (request: Credentials) => Promise<unknown>,
  readMetrics: () => Promise<string>,
): ServePath {
  return async (request, response, requestId) => {
    try {
      await authenticate(credentialsOf(request));
    } catch (error) {
      sendError(response, error, requestId);
      return;
    }
    send(response, 200, "text/plain; version=0.0.4; charset=utf-8", await readMetrics());
  };
}
