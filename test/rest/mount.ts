import type { ConnectRouter } from "@connectrpc/connect";
import type { ApiCall } from "../../src/api/define-service.ts";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import type { UnknownFields } from "../../src/codec/json/reader.ts";
import { SERVER } from "../../src/database/action.ts";
import type { Policy } from "../../src/rules/policy.ts";
import type { Admitted, Call } from "../../src/server/call.ts";
import { connectRpcs } from "../../src/server/connect/connect-rpcs.ts";
import { openRpcs } from "../../src/server/connect/open-rpcs.ts";
import { directRpcs } from "../../src/server/direct-rpcs.ts";
import { createHandler } from "../../src/server/handler.ts";
import { badRequestResponses } from "../../src/server/http/bad-request.ts";
import { bodyBudget, defaultLimits, type Limits } from "../../src/server/http/connection-limits.ts";
import { Listener } from "../../src/server/http/listener.ts";
import { OpenCalls } from "../../src/server/http/open-calls.ts";
import { compose } from "../../src/server/interceptors/chain.ts";
import { deadline } from "../../src/server/interceptors/deadline.ts";
import type { AnyInterceptor, Interceptor } from "../../src/server/interceptors/interceptor.ts";
import { invoke } from "../../src/server/interceptors/invoke.ts";
import { withEnd } from "../../src/server/interceptors/observe.ts";
import { read } from "../../src/server/interceptors/read.ts";
import { validate } from "../../src/server/interceptors/validate.ts";
import { restServer } from "../../src/server/wire/rest.ts";
import { type RpcMethod, rpcMethods } from "../../src/server/wire/rpc.ts";
import type { TestFile } from "./descriptors.ts";

export type Mounted = {
  readonly url: string;
  /** The outcome of each call, in order. */
  readonly ended: { readonly rpc: string; readonly code: number; readonly failure: unknown }[];
  /** Waits for running calls at most this time; default: not at all. */
  stop(graceMs?: number): Promise<void>;
};

export type MountOptions = {
  readonly methods?: Record<string, (request: never, call: ApiCall) => unknown>;
  readonly jsonOptions?: RpcMethod["jsonOptions"];
  readonly maxBodyBytes?: number;
  readonly unknownFields?: UnknownFields;
  readonly budget?: BodyBudget;
  /** The stages that admit calls; by default, one that admits every call. */
  readonly authenticate?: readonly AnyInterceptor[];
  readonly shutdownSignal?: AbortSignal;
  readonly openRoutes?: (router: ConnectRouter) => void;
  readonly limits?: Partial<Limits>;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
};

export const OPEN: Policy = {
  access: "developer",
  scope: undefined,
  role: undefined,
  memberRole: undefined,
  rateLimited: false,
  metered: false,
  whileSuspended: true,
  logged: false,
};

/** A stage that admits every call. */
export function admitting(callerOf: (call: Call) => Partial<Admitted> = () => ({})): Interceptor {
  return (next) => async (call) => {
    const admitted = { actor: SERVER, recheck: async () => undefined, ...callerOf(call) };
    await next(Object.assign(call, { admitted }));
  };
}

/** Serves a test service as the product serves its services, with HTTP/1.1 and HTTP/2 on one port. */
export async function mount({ service }: Pick<TestFile, "service">, options: MountOptions): Promise<Mounted> {
  const ended: Mounted["ended"] = [];
  const unimplemented = () => {
    throw new Error("the test does not implement this method");
  };
  const methods = Object.fromEntries(
    service.methods
      .filter(({ methodKind }) => methodKind === "unary" || methodKind === "server_streaming")
      .map(({ localName }) => [localName, options.methods?.[localName] ?? unimplemented]),
  );
  const shutdownSignal = options.shutdownSignal ?? new AbortController().signal;
  const limits = {
    policies: new Map(service.methods.map((method) => [method, OPEN])),
    maxBodyBytes: options.maxBodyBytes ?? 1_000_000,
  };
  const serve = compose([
    withEnd((call) => (code) => void ended.push({ rpc: call.method.rpc, code, failure: call.failure })),
    deadline(shutdownSignal),
    ...(options.authenticate ?? [admitting()]),
    read(options.budget ?? new BodyBudget(bodyBudget)),
    validate(),
    invoke(),
  ]);
  const rest = restServer({
    serve,
    ...limits,
    services: [{ service, unknownFields: options.unknownFields ?? "refuse", methods }],
  });
  const log = { error: (details: object) => ended.push({ rpc: "failed", code: -1, failure: details }) } as never;
  const open = openRpcs({
    drainSignal: shutdownSignal,
    log,
    openCalls: new OpenCalls({ ...defaultLimits, ...options.limits }),
    openRoutes: options.openRoutes ?? (() => undefined),
  });
  const newRequestId = () => "req_test";
  const { jsonOptions = {} } = options;
  const served = rpcMethods([{ service, methods: options.methods ?? {} }], { ...limits, jsonOptions });
  const { rpcs, serveStream } = directRpcs(
    { serve, methods: served, newRequestId, log },
    new Map([...open, ...connectRpcs(serve, served)]),
  );
  const handler = createHandler({ rest, rpcs, pages: new Map(), newRequestId, log });
  const listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    tls: options.tls,
    handler,
    serveStream,
    limits: { ...defaultLimits, ...options.limits },
    refusals: badRequestResponses(() => "req_test"),
  });
  const { port } = await listener.open();
  return { url: `${options.tls ? "https" : "http"}://127.0.0.1:${port}`, ended, stop: (graceMs = 0) => listener.close(graceMs) };
}
