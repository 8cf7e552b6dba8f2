import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../gen/health/v1/health_pb.js";
import { AdminService } from "../gen/vx/admin/v1/admin_pb.js";
import type { Config } from "./config.ts";
import { operatorGate } from "./gate/gate.ts";
import { operatorCheck } from "./gate/operator-token.ts";
import { interceptors } from "./interceptors/order.ts";
import { prepareValidation } from "./interceptors/validate.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { SMALL_BODY_BYTES } from "./policy/body-limits.ts";
import { policiesOf } from "./policy/policy.ts";
import { BodyBudget } from "./rest/body-budget.ts";
import type { Deps } from "./services/deps.ts";
import { adminService } from "./services/services.ts";
import { badRequestAnswers } from "./transport/bad-request.ts";
import { bindService } from "./transport/bind.ts";
import { createHandler } from "./transport/handler.ts";
import { bindHealth, type Readiness } from "./transport/health.ts";
import { bodyBudget, defaultLimits } from "./transport/limits.ts";
import { Listener } from "./transport/listener.ts";
import { metricsPage } from "./transport/metrics-page.ts";
import { createObserver } from "./transport/observe.ts";
import { OpenCalls } from "./transport/open-calls.ts";
import { probePages } from "./transport/probes.ts";
import { bindReflection } from "./transport/reflection.ts";
import { rpcRoutes } from "./transport/rpc.ts";

export const operatorServices = [AdminService] as const;

type OperatorServerOptions = {
  readonly config: Config;
  readonly token: string;
  readonly deps: Deps;
  readonly readiness: Readiness;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The text of /metrics, over all workers. */
  readonly readMetrics: () => Promise<string>;
  /** Aborted when a drain begins, and when its time is over. */
  readonly drainSignal: AbortSignal;
  readonly shutdownSignal: AbortSignal;
};

/** The listener of the operator API and the metrics, ready to be opened. */
export function createOperatorServer(options: OperatorServerOptions): Listener {
  const { config, deps, readiness, log, metrics } = options;
  const isOperator = operatorCheck(options.token);
  prepareValidation(operatorServices);
  const routes = rpcRoutes({
    policies: policiesOf(operatorServices),
    gate: operatorGate(isOperator),
    interceptors,
    maxBodyBytes: SMALL_BODY_BYTES,
    budget: new BodyBudget(bodyBudget),
    shutdownSignal: options.shutdownSignal,
    drainSignal: options.drainSignal,
    routes: (router) => bindService(router, AdminService, adminService(deps)),
    openRoutes: (router) => {
      bindHealth(
        router,
        operatorServices.map(({ typeName }) => typeName),
        readiness,
      );
      bindReflection(router, [...operatorServices, Health, ServerReflection, ServerReflectionAlpha]);
    },
  });
  const pages = probePages(readiness);
  pages.set("/metrics", metricsPage(isOperator, options.readMetrics));
  return new Listener({
    host: config.adminHost,
    port: config.adminPort,
    tls: config.adminTls?.read(),
    handler: createHandler({
      routes,
      pages,
      openCalls: new OpenCalls(defaultLimits),
      observe: createObserver(log, metrics),
      drawRequestId: deps.ids.request,
      log,
    }),
    refusals: badRequestAnswers(deps.ids.request),
  });
}
