import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/health/v1/health_pb.js";

export type Readiness = {
  isReady(): boolean;
  /** The cells whose accounts cannot be served while the others can. */
  failedCells(): readonly string[];
  /** Calls the listener on every change until the returned function is called. */
  watch(listener: () => void): () => void;
};

/** grpc.health.v1 for the server as a whole ("") and for each of its services. */
export function bindHealth(router: ConnectRouter, services: readonly string[], readiness: Readiness): void {
  const known = new Set(["", ...services]);
  const status = () => (readiness.isReady() ? Status.SERVING : Status.NOT_SERVING);
  router.service(Health, {
    check({ service }: HealthCheckRequest) {
      if (!known.has(service)) throw new ConnectError("unknown service", Code.NotFound);
      return { status: status() };
    },
    list() {
      return { statuses: Object.fromEntries([...known].map((service) => [service, { status: status() }])) };
    },
    async *watch({ service }: HealthCheckRequest, context: HandlerContext) {
      if (!known.has(service)) {
        yield { status: Status.SERVICE_UNKNOWN };
        await untilAborted(context.signal);
        return;
      }
      let lastSent: Status | undefined;
      for (;;) {
        if (lastSent !== status()) {
          lastSent = status();
          yield { status: lastSent };
        }
        if (context.signal.aborted) return;
        await nextChange(readiness, context.signal);
      }
    },
  });
}

function nextChange(readiness: Readiness, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      unwatch();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const unwatch = readiness.watch(done);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
