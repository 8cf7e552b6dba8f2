import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { ApiCall } from "../../src/api/api-call.ts";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import type { Policy } from "../../src/rules/policy.ts";
import { bindService } from "../../src/server/connect/bind.ts";
import { interceptors } from "../../src/server/connect/interceptors.ts";
import { rpcRoutes } from "../../src/server/connect/rpc.ts";
import { badRequestAnswers } from "../../src/server/errors/bad-request.ts";
import { OpenCalls } from "../../src/server/flood/open-calls.ts";
import type { Call } from "../../src/server/gate/call.ts";
import type { Gate } from "../../src/server/gate/gate.ts";
import { createHandler } from "../../src/server/handler.ts";
import { Listener } from "../../src/server/listener.ts";
import { bodyBudget, defaultLimits, type Limits } from "../../src/server/listener-limits.ts";
import { type Implementation, restServer } from "../../src/server/rest/rest.ts";
import type { TestFile } from "./descriptors.ts";

export type Mounted = {
  readonly url: string;
  /** How each call ended, in turn. */
  readonly ended: { readonly rpc: string; readonly code: number; readonly failure: unknown }[];
  stop(): Promise<void>;
};

export type MountOptions = {
  readonly methods?: Record<string, (request: never, call: ApiCall) => unknown>;
  /** For methods that need Connect's context; instead of `methods`. */
  readonly routes?: (router: ConnectRouter) => void;
  readonly keepAliveMs?: number;
  readonly maxBodyBytes?: number;
  readonly budget?: BodyBudget;
  readonly gate?: Gate;
  readonly shutdownSignal?: AbortSignal;
  readonly openRoutes?: (router: ConnectRouter) => void;
  readonly limits?: Partial<Limits>;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
};

const OPEN: Policy = { access: "developer", scope: undefined, rateLimited: false, metered: false };

/** The service of a test, served as the product serves its own, on one port for both forms of HTTP. */
export async function mount({ service }: Pick<TestFile, "service">, options: MountOptions): Promise<Mounted> {
  const ended: Mounted["ended"] = [];
  const observe = (call: Call, code: number) => ended.push({ rpc: call.rpc, code, failure: call.failure });
  const methods = options.methods ?? {};
  const implementations = new Map<DescMethod, Implementation>();
  for (const method of service.methods) {
    const implementation = methods[method.localName];
    if (implementation) implementations.set(method, implementation as Implementation);
  }
  const policies = new Map(service.methods.map((method) => [method, OPEN]));
  const gate = options.gate ?? (async () => undefined);
  const maxBodyBytes = options.maxBodyBytes ?? 1_000_000;
  const budget = options.budget ?? new BodyBudget(bodyBudget);
  const shutdownSignal = options.shutdownSignal ?? new AbortController().signal;
  const rest = restServer({
    services: [{ service, unknownFields: "refuse" }],
    policies,
    implementations,
    gate,
    maxBodyBytes,
    budget,
    shutdownSignal,
    observe,
    ...(options.keepAliveMs === undefined ? {} : { keepAliveMs: options.keepAliveMs }),
  });
  const routes = rpcRoutes({
    policies,
    gate,
    interceptors,
    maxBodyBytes,
    budget,
    shutdownSignal,
    drainSignal: shutdownSignal,
    routes: options.routes ?? ((router) => bindService(router, service, methods as never)),
    openRoutes: options.openRoutes ?? (() => undefined),
  });
  const handler = createHandler({
    routes,
    openCalls: new OpenCalls({ ...defaultLimits, ...options.limits }),
    pages: new Map(),
    rest,
    observe,
    drawRequestId: () => "req_test",
    log: { error: (details: object) => ended.push({ rpc: "failed", code: -1, failure: details }) } as never,
  });
  const listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    tls: options.tls,
    handler,
    limits: { ...defaultLimits, ...options.limits },
    refusals: badRequestAnswers(() => "req_test"),
  });
  const { port } = await listener.open();
  return {
    url: `${options.tls ? "https" : "http"}://127.0.0.1:${port}`,
    ended,
    stop: () => listener.close(0),
  };
}
