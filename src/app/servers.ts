import { randomBytes } from "node:crypto";
import type { DescService } from "@bufbuild/protobuf";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { type Deps, withDeps } from "../api/define-service.ts";
import { BodyBudget } from "../codec/body-budget.ts";
import { SERVER } from "../database/action.ts";
import type { Cells } from "../database/driver/cells.ts";
import { generateSessionToken } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { createIds } from "../domain/ids.ts";
import type { FailedCall } from "../failures/store.ts";
import type { Meter } from "../generations/meter.ts";
import type { Admitter } from "../keys/admit.ts";
import { reportLeaks } from "../keys/store.ts";
import { actionOf, recordRefusal } from "../operators/operator-action.ts";
import { OverviewFeed } from "../operators/overview-feed.ts";
import { endSession, findOperator, findSession, signInOperator } from "../operators/store.ts";
import type { PaymentProvider } from "../payments/provider.ts";
import { EVENTS_PATH } from "../payments/stripe/webhook-endpoint.ts";
import { SMALL_BODY_BYTES } from "../rules/body-limits.ts";
import { isRestOnly, policiesOf } from "../rules/policy.ts";
import { prepareValidation } from "../rules/validate.ts";
import { connectRpcs } from "../server/connect/connect-rpcs.ts";
import { bindHealth, type Readiness } from "../server/connect/health.ts";
import { openRpcs } from "../server/connect/open-rpcs.ts";
import { bindReflection } from "../server/connect/reflection.ts";
import { FailedAuthentications } from "../server/credentials/failed-authentications.ts";
import { metricsAuthentication, operatorAuthentication } from "../server/credentials/operator-authentication.ts";
import { SessionAuthentication } from "../server/credentials/session-authentication.ts";
import { directRpcs } from "../server/direct-rpcs.ts";
import { createHandler } from "../server/handler.ts";
import { badRequestResponses } from "../server/http/bad-request.ts";
import { bodyBudget, defaultLimits } from "../server/http/connection-limits.ts";
import { Cors } from "../server/http/cors.ts";
import { Listener } from "../server/http/listener.ts";
import { type HttpHandler, pathOf, requestIdFrom, type ServePath } from "../server/http/message.ts";
import { OpenCalls } from "../server/http/open-calls.ts";
import { chainOfKeys, chainOfMembers, chainOfOperators, compose } from "../server/interceptors/chain.ts";
import { leakReports } from "../server/leak-reports.ts";
import { consolePages } from "../server/pages/console-pages.ts";
import { pages } from "../server/pages/pages.ts";
import { metricsPage, probePages } from "../server/pages/probes.ts";
import { paymentEvents } from "../server/payment-events.ts";
import { DEVELOPER_SERVICES, developerServices, OPERATOR_SERVICES, operatorServices } from "../server/services.ts";
import { OidcClient } from "../server/sign-in/oidc-client.ts";
import { type OperatorSignIn, sessionPage, signInPages, signOutPosts } from "../server/sign-in/sign-in-pages.ts";
import { sendRefusal } from "../server/wire/refusal.ts";
import { restServer } from "../server/wire/rest.ts";
import { rpcMethods } from "../server/wire/rpc.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { StartTrace } from "../telemetry/telemetry.ts";
import type { AdminTokens } from "./admin-tokens.ts";
import type { Payments } from "./components.ts";
import { createCustomerPage } from "./customer-page.ts";
import { collectAfterLargeRequests } from "./garbage.ts";
import type { Config } from "./settings/config.ts";
import type { LeakKeys } from "./settings/leak-keys.ts";

/** The listeners. They load most of the code, so they are imported while the database starts. */

export { createComponents } from "./components.ts";

type ServerOptions = {
  readonly config: Config;
  readonly deps: Deps;
  readonly meter: Meter;
  readonly readiness: Readiness;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly startTrace: StartTrace | undefined;
  /** drainSignal is aborted when a drain begins, shutdownSignal when its time is over. */
  readonly drainSignal: AbortSignal;
  readonly shutdownSignal: AbortSignal;
};

type PublicServerOptions = ServerOptions & {
  readonly leakKeys: LeakKeys | undefined;
  readonly payments: Payments | undefined;
  readonly recordFailure: (call: FailedCall) => void;
  readonly admitter: Admitter;
};

/** Health and reflection, which need no key. */
function openServices({ drainSignal, readiness, log }: ServerOptions, services: readonly DescService[]) {
  return openRpcs({
    drainSignal,
    log,
    openCalls: new OpenCalls(defaultLimits),
    openRoutes: (router) => {
      const names = services.map(({ typeName }) => typeName);
      bindHealth(router, names, readiness);
      bindReflection(router, [...services, Health, ServerReflection, ServerReflectionAlpha]);
    },
  });
}

/** Requests of other services, which sign them. */
function signedPosts({ leakKeys, payments, deps, log }: PublicServerOptions, budget: BodyBudget): Map<string, ServePath> {
  const posts = new Map<string, ServePath>();
  if (leakKeys) {
    const keyOf = (identifier: string) => leakKeys.get(identifier);
    const report: Parameters<typeof leakReports>[0]["report"] = (leaks, { identifier, requestId }) => {
      const actor = { ...SERVER, id: "leak-report", name: `leak report: ${identifier}` };
      return reportLeaks(deps.database, actionOf(actor, "ReportLeak", requestId, {}), leaks);
    };
    posts.set("/leaks", leakReports({ keyOf, budget, report, log }));
  }
  if (payments) {
    const { provider, topUps } = payments;
    const readEvent: PaymentProvider["readEvent"] = (body, signature) => provider.readEvent(body, signature);
    posts.set(EVENTS_PATH, paymentEvents({ readEvent, handle: (event) => topUps.handle(event), budget, log }));
  }
  return posts;
}

/** Creates the listener of the developer API. The caller opens it. */
export function createPublicServer(options: PublicServerOptions): Listener {
  const { config, deps, meter, readiness, log, metrics } = options;
  const failures = new FailedAuthentications(config.authFailuresPerMinute, Date.now);
  prepareValidation(developerServices);
  const policies = policiesOf(developerServices);
  // An account has half of the budget, and a message can weigh three times its body.
  const enough = 6 * config.maxBodyBytes + bodyBudget.smallBytes;
  const budget = new BodyBudget({ ...bodyBudget, maxBytes: Math.max(bodyBudget.maxBytes, enough) });
  collectAfterLargeRequests(budget, log, options.shutdownSignal);
  const services = DEVELOPER_SERVICES.map((definition) => withDeps(definition, { ...deps, meter }));
  const rpcServices = services.filter(({ service }) => !isRestOnly(service));
  const components = { ...options, budget };
  const serve = compose(chainOfKeys({ ...components, failures, trustedProxies: config.trustedProxies }));
  const limits = { policies, maxBodyBytes: config.maxBodyBytes };
  const methods = rpcMethods(rpcServices, limits);
  const customers = createCustomerPage({
    ...options,
    services,
    failures,
    serveMembers: (authentication) => compose(chainOfMembers({ ...components, ...authentication })),
  });
  const open = openServices(
    options,
    rpcServices.map(({ service }) => service),
  );
  const { rpcs, serveStream } = directRpcs(
    { serve, methods, newRequestId: deps.ids.request, log },
    new Map([...open, ...connectRpcs(serve, methods), ...customers.rpcs]),
  );
  const cors = new Cors(config.corsOrigins);
  const posts = signedPosts(options, budget);
  const handler = createHandler({
    rest: restServer({ serve, ...limits, services }),
    rpcs,
    pages: new Map([...probePages(readiness), ...pages(deps.catalog, config.product), ...customers.pages]),
    posts: new Map([...posts, ...customers.posts]),
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
  metrics.gauge("vx_body_bytes", "Bytes of requests in memory, as bodies and decoded.", () => budget.usedBytes);
  metrics.gauge("vx_running_calls", "Calls that are running.", () => listener.running);
  metrics.gauge("vx_connections", "Open connections of the public listener.", () => listener.connections);
  return listener;
}

type OperatorServerOptions = ServerOptions & {
  readonly adminTokens: AdminTokens;
  /** Returns the metrics of this process and of all workers. */
  readonly readMetrics: () => Promise<Metrics["registry"]>;
};

/** Creates the listener of the operator API and the metrics. The caller opens it. */
export function createOperatorServer(options: OperatorServerOptions): Listener {
  const { config, deps, readiness, log } = options;
  const failures = new FailedAuthentications(config.authFailuresPerMinute, Date.now);
  const signIn = createSignIn({ config, database: deps.database, failures, log });
  const authenticate = operatorAuthentication({
    adminTokens: options.adminTokens,
    find: (fingerprint) => findOperator(deps.database, fingerprint),
    failures,
    sessions: signIn?.sessions,
  });
  const readMetrics = async () => await (await options.readMetrics()).metrics();
  prepareValidation(operatorServices);
  const chain = chainOfOperators({
    ...options,
    budget: new BodyBudget(bodyBudget),
    authenticate,
    logRefusal: (call, actor, error) => recordRefusal(deps, actionOf(actor, call.method.name, call.requestId, {}), error),
  });
  const overview = new OverviewFeed({
    ...options,
    database: deps.database,
    auditHours: config.auditHours,
    isReachable: () => readiness.isReady(),
    everyMinute,
    onFailure: (error) => log.error({ err: error }, "reading the figures of the console failed"),
  });
  const serviceDeps = { ...deps, meter: options.meter, watchOverview: overview.watch };
  const services = OPERATOR_SERVICES.map((definition) => withDeps(definition, serviceDeps));
  const policies = policiesOf(operatorServices);
  const methods = rpcMethods(services, { policies, maxBodyBytes: SMALL_BODY_BYTES });
  const open = openServices(options, operatorServices);
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
      rpcs: new Map([...open, ...connectRpcs(compose(chain), methods)]),
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

type SignInOptions = {
  readonly config: Config;
  readonly database: Cells;
  readonly failures: FailedAuthentications;
  readonly log: Log;
};

/** Undefined without the settings of OpenID Connect. */
function createSignIn({ config, database, failures, log }: SignInOptions): OperatorSignIn | undefined {
  const { oidc, adminUrl: url } = config;
  if (!oidc) return undefined;
  const isSecure = url === undefined ? config.adminTls !== undefined : url.startsWith("https:");
  return {
    provider: new OidcClient(oidc, Date.now),
    sessions: new SessionAuthentication({
      cookie: { name: "vx_session", path: "/" },
      url,
      isSecure,
      refusal: "invalid_operator_token",
      find: (fingerprint, isUse) => findSession(database, fingerprint, isUse),
      failures,
    }),
    page: { path: "/", name: "console", credential: "the token of an operator" },
    path: "/auth",
    sessionSeconds: 8 * 3_600,
    url,
    isSecure,
    newToken: () => generateSessionToken(randomBytes),
    start: async (identity, fingerprint, requestId) => (await signInOperator(database, identity, fingerprint, requestId))?.id,
    end: (fingerprint, requestId) => endSession(database, fingerprint, requestId),
    failures,
    log,
  };
}

// Only for the ids of requests, which have no time.
const requestIds = createIds(Date.now);
const waitingPages = probePages({
  isReady: () => false,
  failedCells: () => [],
  watch: () => () => undefined,
});

/** Answers probes and refuses calls until the database can be used. */
const serveWaiting: HttpHandler = (request, response) => {
  const requestId = requestIdFrom(request.headers["x-request-id"], requestIds.request);
  response.setHeader("x-request-id", requestId);
  const page = waitingPages.get(pathOf(request) ?? "");
  if (page) void page(request, response, requestId);
  else sendRefusal(request, response, new DomainError("unavailable"), requestId);
};

/** The listeners of both ports while the server waits for its database. The caller opens them. */
export function createWaitingServers({ host, port, tls, adminHost, adminPort, adminTls }: Config) {
  const listenerOf = (at: { host: string; port: number; tls: Config["tls"] }) =>
    new Listener({
      ...at,
      tls: at.tls?.read(),
      handler: serveWaiting,
      refusals: badRequestResponses(requestIds.request),
    });
  return {
    publicServer: listenerOf({ host, port, tls }),
    operatorServer: listenerOf({ host: adminHost, port: adminPort, tls: adminTls }),
  };
}
