import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import type { Deps } from "../api/deps.ts";
import { actionOf, recordRefusal } from "../api/operator-action.ts";
import { OPERATOR_SERVICES, operatorServices } from "../api/services.ts";
import type { Meter } from "../billing/meter.ts";
import { BodyBudget } from "../codec/body-budget.ts";
import { SMALL_BODY_BYTES } from "../rules/body-limits.ts";
import { policiesOf } from "../rules/policy.ts";
import { prepareValidation } from "../rules/validate.ts";
import { bindHealth, type Readiness } from "../server/connect/health.ts";
import { bindReflection } from "../server/connect/reflection.ts";
import { bindService } from "../server/connect/rpc-service.ts";
import { rpcServer } from "../server/connect/serve-rpc.ts";
import { badRequestResponses } from "../server/errors/bad-request.ts";
import { OpenCalls } from "../server/flood/open-calls.ts";
import { metricsAuthentication, operatorAuthentication } from "../server/gate/authenticate-operator.ts";
import { FailedAuthentications } from "../server/gate/failed-authentications.ts";
import { operatorGate } from "../server/gate/gate.ts";
import { createHandler } from "../server/handler.ts";
import type { IncomingCall } from "../server/incoming-call.ts";
import { Listener } from "../server/listener.ts";
import { bodyBudget, defaultLimits } from "../server/listener-limits.ts";
import { createObserver } from "../server/observation.ts";
import { consolePages } from "../server/pages/console-pages.ts";
import { metricsPage } from "../server/pages/metrics-page.ts";
import { probePages } from "../server/pages/probes.ts";
import { sessionPage, signInPages, signOutPosts } from "../server/sign-in/sign-in-pages.ts";
import { findOperator } from "../store/operators.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { StartTrace } from "../telemetry/server-trace.ts";
import type { AdminTokens } from "./admin-tokens.ts";
import type { Config } from "./config.ts";
import { createSignIn } from "./create-sign-in.ts";
import { OverviewFeed } from "./overview-feed.ts";

type OperatorServerOptions = {
  readonly config: Config;
  readonly adminTokens: AdminTokens;
  readonly deps: Deps;
  readonly meter: Meter;
  readonly readiness: Readiness;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly startTrace: StartTrace | undefined;
  /** Returns the metrics of this process and of all workers. */
  readonly readMetrics: () => Promise<Metrics["registry"]>;
  /** drainSignal is aborted when a drain begins, shutdownSignal when its time is over. */
  readonly drainSignal: AbortSignal;
  readonly shutdownSignal: AbortSignal;
};

/** The method of a call whose route is known. */
function methodOf({ target }: IncomingCall): string {
  return /\/(\w+)(?:\?|$)/.exec(target)?.[1] ?? "";
}

/** Creates the listener of the operator API and the metrics. The caller opens it. */
export function createOperatorServer(options: OperatorServerOptions): Listener {
  const { config, deps, readiness, log } = options;
  const failures = new FailedAuthentications(config.authFailuresPerMinute, Date.now);
  const signIn = createSignIn({ config, database: deps.database, failures, log });
  const authenticate = operatorAuthentication({
    isAdminToken: (token) => options.adminTokens.matches(token),
    find: (fingerprint) => findOperator(deps.database, fingerprint),
    failures,
    sessions: signIn?.sessions,
  });
  const readMetrics = async () => await (await options.readMetrics()).metrics();
  prepareValidation(operatorServices);
  const rpcs = rpcServer({
    policies: policiesOf(operatorServices),
    gate: operatorGate({
      authenticate,
      logRefusal: (call, operator, error) =>
        recordRefusal(deps, actionOf(operator, methodOf(call), call.requestId, {}), error),
    }),
    maxBodyBytes: SMALL_BODY_BYTES,
    budget: new BodyBudget(bodyBudget),
    shutdownSignal: options.shutdownSignal,
    drainSignal: options.drainSignal,
    openCalls: new OpenCalls(defaultLimits),
    observe: createObserver(options),
    routes: (router) => {
      const overview = new OverviewFeed({
        ...options,
        database: deps.database,
        isReachable: () => readiness.isReady(),
        everyMinute,
        onFailure: (error) => log.error({ err: error }, "reading the figures of the console failed"),
      });
      const parts = { ...options, watchOverview: overview.watch };
      for (const { service, methods } of OPERATOR_SERVICES) bindService(router, service, methods(parts));
    },
    openRoutes: (router) => {
      bindHealth(
        router,
        operatorServices.map(({ typeName }) => typeName),
        readiness,
      );
      bindReflection(router, [...operatorServices, Health, ServerReflection, ServerReflectionAlpha]);
    },
  });
  const authenticateMetrics = metricsAuthentication(config.metricsToken, authenticate);
  const pages = new Map([
    ...probePages(readiness),
    ...consolePages("operator", "/", config.product),
    ["/metrics", metricsPage(authenticateMetrics, readMetrics)],
    ["/auth/session", sessionPage(authenticate, signIn)],
    ...(signIn ? signInPages(signIn) : []),
  ]);
  return new Listener({
    host: config.adminHost,
    port: config.adminPort,
    tls: config.adminTls?.read(),
    handler: createHandler({
      rpcs,
      pages,
      ...(signIn && { posts: signOutPosts(signIn) }),
      newRequestId: deps.ids.request,
      log,
    }),
    refusals: badRequestResponses(deps.ids.request),
  });
}

/** The work does not keep the process running. */
function everyMinute(work: () => void): () => void {
  const timer = setInterval(work, 60_000).unref();
  return () => clearInterval(timer);
}
