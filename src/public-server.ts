import type { DescService } from "@bufbuild/protobuf";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../gen/health/v1/health_pb.js";
import { ChatService } from "../gen/vx/openai/v1/chat_pb.js";
import { GenerateService } from "../gen/vx/v1/generate_pb.js";
import { KeyService } from "../gen/vx/v1/key_pb.js";
import { LedgerService } from "../gen/vx/v1/ledger_pb.js";
import { MeService } from "../gen/vx/v1/me_pb.js";
import { ModelService } from "../gen/vx/v1/model_pb.js";
import type { Config } from "./config.ts";
import { FailedAuthentications } from "./gate/failed-authentications.ts";
import { developerGate } from "./gate/gate.ts";
import { interceptors } from "./interceptors/order.ts";
import { prepareValidation } from "./interceptors/validate.ts";
import type { Log } from "./log.ts";
import type { Meter } from "./metering/meter.ts";
import type { Metrics } from "./metrics.ts";
import { pages } from "./pages/pages.ts";
import { policiesOf } from "./policy/policy.ts";
import { BodyBudget } from "./rest/body-budget.ts";
import type { RestService } from "./rest/routes.ts";
import type { Deps } from "./services/deps.ts";
import {
  chatService,
  generateService,
  keyService,
  ledgerService,
  meService,
  modelService,
} from "./services/services.ts";
import type { Admitter } from "./store/admit.ts";
import { badRequestAnswers } from "./transport/bad-request.ts";
import { bindService } from "./transport/bind.ts";
import { createHandler } from "./transport/handler.ts";
import { bindHealth, type Readiness } from "./transport/health.ts";
import { bodyBudget, defaultLimits } from "./transport/limits.ts";
import { Listener } from "./transport/listener.ts";
import { createObserver } from "./transport/observe.ts";
import { OpenCalls } from "./transport/open-calls.ts";
import { probePages } from "./transport/probes.ts";
import { bindReflection } from "./transport/reflection.ts";
import { implementationsOf, restServer } from "./transport/rest.ts";
import { rpcRoutes } from "./transport/rpc.ts";

/** The services of the developer API. */
export const developerServices: readonly DescService[] = [
  MeService,
  GenerateService,
  KeyService,
  ModelService,
  LedgerService,
  ChatService,
];

/** OpenAI's clients send fields we have never heard of; everywhere else one is a mistake worth telling. */
export const restServices: readonly RestService[] = developerServices.map((service) => ({
  service,
  unknownFields: service === ChatService ? "ignore" : "refuse",
}));

/** What everyone may call without a key. */
const openServices: readonly DescService[] = [Health, ServerReflection, ServerReflectionAlpha];

type PublicServerOptions = {
  readonly config: Config;
  readonly deps: Deps;
  readonly admitter: Admitter;
  readonly meter: Meter;
  readonly readiness: Readiness;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Aborted when a drain begins, and when its time is over. */
  readonly drainSignal: AbortSignal;
  readonly shutdownSignal: AbortSignal;
};

/** The listener of the developer API, ready to be opened. */
export function createPublicServer(options: PublicServerOptions): Listener {
  const { config, deps, admitter, meter, readiness, log, metrics } = options;
  const gate = developerGate({
    admit: (request) => admitter.admit(request),
    failures: new FailedAuthentications(config.authFailuresPerMinute, Date.now),
  });
  prepareValidation(developerServices);
  const policies = policiesOf(developerServices);
  const observe = createObserver(log, metrics);
  // The largest body the setting allows fits, also when it is held compressed and not.
  const enough = 2 * config.maxBodyBytes + bodyBudget.smallBytes;
  const budget = new BodyBudget({ ...bodyBudget, maxBytes: Math.max(bodyBudget.maxBytes, enough) });
  const methods = {
    me: meService,
    keys: keyService(deps),
    models: modelService(deps),
    ledger: ledgerService(deps),
    generate: generateService(meter),
    chat: chatService(meter),
  };
  const routes = rpcRoutes({
    policies,
    gate,
    interceptors,
    maxBodyBytes: config.maxBodyBytes,
    budget,
    shutdownSignal: options.shutdownSignal,
    drainSignal: options.drainSignal,
    routes: (router) => {
      bindService(router, MeService, methods.me);
      bindService(router, KeyService, methods.keys);
      bindService(router, LedgerService, methods.ledger);
      bindService(router, GenerateService, methods.generate);
      bindService(router, ChatService, methods.chat);
      bindService(router, ModelService, methods.models);
    },
    openRoutes: (router) => {
      bindHealth(
        router,
        developerServices.map(({ typeName }) => typeName),
        readiness,
      );
      bindReflection(router, [...developerServices, ...openServices]);
    },
  });
  const rest = restServer({
    services: restServices,
    policies,
    implementations: new Map([
      ...implementationsOf(MeService, methods.me),
      ...implementationsOf(KeyService, methods.keys),
      ...implementationsOf(ModelService, methods.models),
      ...implementationsOf(LedgerService, methods.ledger),
      ...implementationsOf(GenerateService, methods.generate),
      ...implementationsOf(ChatService, methods.chat),
    ]),
    gate,
    maxBodyBytes: config.maxBodyBytes,
    budget,
    shutdownSignal: options.shutdownSignal,
    observe,
  });
  const handler = createHandler({
    routes,
    rest,
    pages: new Map([...probePages(readiness), ...pages(deps.catalog)]),
    openCalls: new OpenCalls(defaultLimits),
    observe,
    drawRequestId: deps.ids.request,
    log,
  });
  const listener = new Listener({
    host: config.host,
    port: config.port,
    tls: config.tls?.read(),
    handler,
    limits: { ...defaultLimits, connectionsPerAddress: config.maxConnectionsPerAddress },
    refusals: badRequestAnswers(deps.ids.request),
  });
  metrics.gauge("vx_body_bytes", "Bytes of request bodies in memory.", () => budget.held);
  metrics.gauge("vx_running_calls", "Calls that are running.", () => listener.running);
  metrics.gauge("vx_connections", "Open connections of the public listener.", () => listener.connections);
  return listener;
}
