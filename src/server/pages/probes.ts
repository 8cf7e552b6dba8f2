import { type Credentials, credentialsOf } from "../call.ts";
import type { Readiness } from "../connect/health.ts";
import { type ServePath, send } from "../http/message.ts";

/** /livez: the process answers. /readyz: it can take calls. */
export function probePages(readiness: Readiness): Map<string, ServePath> {
  return new Map<string, ServePath>([
    ["/livez", (_request, response) => send(response, 200, "text/plain", "ok\n")],
    [
      "/readyz",
      (_request, response) => {
        const ready = readiness.isReady();
        const failed = readiness.failedCells().map((name) => `the cell "${name}" cannot be used\n`);
        send(response, ready ? 200 : 503, "text/plain", (ready ? "ready\n" : "not ready\n") + failed.join(""));
      },
    ],
  ]);
}

export function metricsPage(
  authenticate: (request: Credentials) => Promise<unknown>,
  readMetrics: () => Promise<string>,
): ServePath {
  return async (request, response) => {
    await authenticate(credentialsOf(request));
    send(response, 200, "text/plain; version=0.0.4; charset=utf-8", await readMetrics());
  };
}
