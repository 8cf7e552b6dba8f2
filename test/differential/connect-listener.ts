import { withDeps } from "../../src/api/define-service.ts";
import type { createComponents } from "../../src/app/components.ts";
import type { Config } from "../../src/app/settings/config.ts";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { isRestOnly, policiesOf } from "../../src/rules/policy.ts";
import { connectRpcs } from "../../src/server/connect/connect-rpcs.ts";
import { bindHealth } from "../../src/server/connect/health.ts";
import { openRpcs } from "../../src/server/connect/open-rpcs.ts";
import { FailedAuthentications } from "../../src/server/credentials/failed-authentications.ts";
import { createHandler } from "../../src/server/handler.ts";
import { badRequestResponses } from "../../src/server/http/bad-request.ts";
import { bodyBudget, defaultLimits } from "../../src/server/http/connection-limits.ts";
import { Cors } from "../../src/server/http/cors.ts";
import { Listener } from "../../src/server/http/listener.ts";
import { OpenCalls } from "../../src/server/http/open-calls.ts";
import { chainOfKeys, compose } from "../../src/server/interceptors/chain.ts";
import { pages } from "../../src/server/pages/pages.ts";
import { probePages } from "../../src/server/pages/probes.ts";
import { DEVELOPER_SERVICES, developerServices } from "../../src/server/services.ts";
import { restServer } from "../../src/server/wire/rest.ts";
import { rpcMethods } from "../../src/server/wire/rpc.ts";
import type { Log } from "../../src/telemetry/log.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { PRODUCT } from "../support/product.ts";

type ConnectListenerOptions = ReturnType<typeof createComponents> & { readonly config: Config; readonly log: Log };

/** The listener of the developer API as createPublicServer composes it, but Connect serves every RPC. */
export function createConnectListener(options: ConnectListenerOptions): Listener {
  const { config, deps, admitter, meter, readiness, log } = options;
  const services = DEVELOPER_SERVICES.map((definition) => withDeps(definition, { ...deps, meter }));
  const chain = chainOfKeys({
    admitter,
    meter,
    failures: new FailedAuthentications(config.authFailuresPerMinute, Date.now),
    trustedProxies: config.trustedProxies,
    budget: new BodyBudget(bodyBudget),
    shutdownSignal: options.shutdownSignal,
    log,
    metrics: createMetrics("test"),
    startTrace: undefined,
  });
  const serve = compose(chain);
  const limits = { policies: policiesOf(developerServices), maxBodyBytes: config.maxBodyBytes };
  const methods = rpcMethods(
    services.filter(({ service }) => !isRestOnly(service)),
    limits,
  );
  const open = openRpcs({
    drainSignal: options.drainSignal,
    log,
    openCalls: new OpenCalls(defaultLimits),
    openRoutes: (router) => bindHealth(router, [], readiness),
  });
  const cors = new Cors(config.corsOrigins);
  const handler = createHandler({
    rest: restServer({ serve, ...limits, services }),
    rpcs: new Map([...open, ...connectRpcs(serve, methods)]),
    pages: new Map([...probePages(readiness), ...pages(deps.catalog, PRODUCT)]),
    cors,
    newRequestId: deps.ids.request,
    log,
  });
  return new Listener({
    host: config.host,
    port: 0,
    handler,
    limits: defaultLimits,
    refusals: badRequestResponses(deps.ids.request, cors),
  });
}
