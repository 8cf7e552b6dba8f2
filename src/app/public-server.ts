import type { DescService } from "@bufbuild/protobuf";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import type { Deps } from "../api/deps.ts";
import { DEVELOPER_SERVICES, developerServices } from "../api/services.ts";
import type { Meter } from "../billing/meter.ts";
import { BodyBudget } from "../codec/body-budget.ts";
import { policiesOf } from "../rules/policy.ts";
import { isRestOnly } from "../rules/surface.ts";
import { prepareValidation } from "../rules/validate.ts";
import { bindHealth, type Readiness } from "../server/connect/health.ts";
import { bindReflection } from "../server/connect/reflection.ts";
import { bindService } from "../server/connect/rpc-service.ts";
import { rpcServer } from "../server/connect/serve-rpc.ts";
import { Cors } from "../server/cors.ts";
import { badRequestResponses } from "../server/errors/bad-request.ts";
import { OpenCalls } from "../server/flood/open-calls.ts";
import { FailedAuthentications } from "../server/gate/failed-authentications.ts";
import { developerGate } from "../server/gate/gate.ts";
import { createHandler } from "../server/handler.ts";
import { Listener } from "../server/listener.ts";
import { bodyBudget, defaultLimits } from "../server/listener-limits.ts";
import { createObserver } from "../server/observation.ts";
import { pages } from "../server/pages/pages.ts";
import { probePages } from "../server/pages/probes.ts";
import { restServer } from "../server/rest/serve-rest.ts";
import { directMethods } from "../server/rpc/direct-method.ts";
import { directRpcServer } from "../server/rpc/direct-rpc.ts";
import type { Admitter } from "../store/admit.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { StartTrace } from "../telemetry/server-trace.ts";
import type { Config } from "./config.ts";

/** Services that need no key. */
const openServices: readonly DescService[] = [Health, ServerReflection, ServerReflectionAlpha];

type PublicServerOptions = {
  readonly config: Config;
  readonly deps: Deps;
  readonly admitter: Admitter;
  readonly meter: Meter;
  readonly readiness: Readiness;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly startTrace: StartTrace | undefined;
  /** drainSignal is aborted when a drain begins, shutdownSignal when its time is over. */
  readonly drainSignal: AbortSignal;
  readonly shutdownSignal: AbortSignal;
};

/** Creates the listener of the developer API. The caller opens it. */
export function createPublicServer(options: PublicServerOptions): Listener {
  const { config, deps, admitter, meter, readiness, log, metrics } = options;
  const gate = developerGate({
    admit: (request) => admitter.admit(request),
    failures: new FailedAuthentications(config.authFailuresPerMinute, Date.now),
  });
  prepareValidation(developerServices);
  const policies = policiesOf(developerServices);
  const observe = createObserver(options);
  // An account has half of the budget, and a message can weigh three times its body.
  const enough = 6 * config.maxBodyBytes + bodyBudget.smallBytes;
  const budget = new BodyBudget({ ...bodyBudget, maxBytes: Math.max(bodyBudget.maxBytes, enough) });
  const services = DEVELOPER_SERVICES.map((definition) => ({
    ...definition,
    methods: definition.methods({ deps, meter }),
  }));
  const rpcServices = services.filter(({ service }) => !isRestOnly(service));
  const shared = {
    policies,
    gate,
    maxBodyBytes: config.maxBodyBytes,
    budget,
    shutdownSignal: options.shutdownSignal,
    observe,
  };
  const connect = rpcServer({
    ...shared,
    drainSignal: options.drainSignal,
    openCalls: new OpenCalls(defaultLimits),
    routes: (router) => {
      for (const { service, methods } of rpcServices) bindService(router, service, methods);
    },
    openRoutes: (router) => {
      bindHealth(
        router,
        rpcServices.map(({ service }) => service.typeName),
        readiness,
      );
      bindReflection(router, [...rpcServices.map(({ service }) => service), ...openServices]);
    },
  });
  const { rpcs, serveStream } = directRpcServer(
    {
      ...shared,
      methods: rpcServices.flatMap(({ service, methods }) => directMethods(service, methods)),
      newRequestId: deps.ids.request,
      log,
    },
    connect,
  );
  const cors = new Cors(config.corsOrigins);
  const handler = createHandler({
    rest: restServer({ ...shared, services }),
    rpcs,
    pages: new Map([...probePages(readiness), ...pages(deps.catalog, config.product)]),
    cors,
    newRequestId: deps.ids.request,
    log,
  });
  const listener = new Listener({
    host: config.host,
    port: config.port,
    tls: config.tls?.read(),
    handler,
    serveStream,
    limits: { ...defaultLimits, connectionsPerAddress: config.maxConnectionsPerAddress },
    refusals: badRequestResponses(deps.ids.request, cors),
  });
  metrics.gauge(
    "vx_body_bytes",
    "Bytes of requests in memory, as bodies and decoded.",
    () => budget.usedBytes,
  );
  metrics.gauge("vx_running_calls", "Calls that are running.", () => listener.running);
  metrics.gauge("vx_connections", "Open connections of the public listener.", () => listener.connections);
  return listener;
}
