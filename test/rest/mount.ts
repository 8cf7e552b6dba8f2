import type { ConnectRouter } from "@connectrpc/connect";
import type { ApiCall } from "../../src/api/define-service.ts";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import type { UnknownFields } from "../../src/codec/json/reader.ts";
import type { Policy } from "../../src/rules/policy.ts";
import type { IncomingCall } from "../../src/server/call.ts";
import { connectRpcs } from "../../src/server/connect/connect-rpcs.ts";
import { openRpcs } from "../../src/server/connect/open-rpcs.ts";
import { directRpcs } from "../../src/server/direct-rpcs.ts";
import type { Gate } from "../../src/server/gate/gate.ts";
import { createHandler } from "../../src/server/handler.ts";
import { badRequestResponses } from "../../src/server/http/bad-request.ts";
import { bodyBudget, defaultLimits, type Limits } from "../../src/server/http/limits.ts";
import { Listener } from "../../src/server/http/listener.ts";
import { OpenCalls } from "../../src/server/http/open-calls.ts";
import { type CallRecord, Observation } from "../../src/server/observation.ts";
import { CallServer } from "../../src/server/serve-call.ts";
import { restServer } from "../../src/server/wire/rest.ts";
import { type RpcMethod, rpcMethods } from "../../src/server/wire/rpc.ts";
import { SERVER } from "../../src/store/action.ts";
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
  readonly gate?: Gate;
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
};

/** Admits every call. */
export const openGate: Gate = async () => ({ actor: SERVER, key: undefined, window: undefined, recheck: async () => undefined });

/** Serves a test service as the product serves its services, with HTTP/1.1 and HTTP/2 on one port. */
export async function mount({ service }: Pick<TestFile, "service">, options: MountOptions): Promise<Mounted> {
  const ended: Mounted["ended"] = [];
  const report = ({ rpc, code, failure }: CallRecord) => ended.push({ rpc, code, failure });
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
  const calls = new CallServer({
    gate: options.gate ?? openGate,
    budget: options.budget ?? new BodyBudget(bodyBudget),
    shutdownSignal,
    observe: (call: IncomingCall, rpc: string) =>
      new Observation({ call, rpc, route: undefined, trace: undefined, startedAt: performance.now() }, report),
  });
  const rest = restServer({
    calls,
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
    { calls, methods: served, newRequestId, log },
    new Map([...open, ...connectRpcs(calls, served)]),
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
