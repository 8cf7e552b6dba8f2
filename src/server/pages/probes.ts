import type { Readiness } from "../connect/health.ts";
import type { ServePath } from "../http.ts";
import { send } from "../http.ts";

/** /livez: the process answers. /readyz: it can take calls. */
export function probePages(readiness: Readiness): Map<string, ServePath> {
  return new Map<string, ServePath>([
    ["/livez", (_request, response) => send(response, 200, "text/plain", "ok\n")],
    [
      "/readyz",
      (_request, response) => {
        const ready = readiness.isReady();
        const failed = readiness.failedCells().map((name) => `the cell "${name}" cannot be used\n`);
        send(
          response,
          ready ? 200 : 503,
          "text/plain",
          (ready ? "ready\n" : "not ready\n") + failed.join(""),
        );
      },
    ],
  ]);
}
