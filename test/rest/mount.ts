import type { DescMethod } from "@bufbuild/protobuf";
import type { Call } from "../../src/gate/call.ts";
import type { Gate } from "../../src/gate/gate.ts";
import type { Policy } from "../../src/policy/policy.ts";
import { BodyBudget } from "../../src/rest/body-budget.ts";
import { badRequestAnswers } from "../../src/transport/bad-request.ts";
import { createHandler } from "../../src/transport/handler.ts";
import { bodyBudget } from "../../src/transport/limits.ts";
import { Listener } from "../../src/transport/listener.ts";
import { type Implementation, restServer } from "../../src/transport/rest.ts";
import type { TestFile } from "./descriptors.ts";

export type Mounted = {
  readonly url: string;
  /** How each call ended, in turn. */
  readonly ended: { readonly rpc: string; readonly code: number; readonly failure: unknown }[];
  stop(): Promise<void>;
};

export type MountOptions = {
  readonly methods: Record<string, (request: never, call: Call) => unknown>;
  readonly keepAliveMs?: number;
  readonly maxBodyBytes?: number;
  readonly budget?: BodyBudget;
  readonly gate?: Gate;
};

const OPEN: Policy = { access: "developer", scope: undefined, rateLimited: false, metered: false };

/** The service of a test, served as the product serves its own, on one port for both forms of HTTP. */
export async function mount({ service }: TestFile, options: MountOptions): Promise<Mounted> {
  const ended: Mounted["ended"] = [];
  const observe = (call: Call, code: number) => ended.push({ rpc: call.rpc, code, failure: call.failure });
  const implementations = new Map<DescMethod, Implementation>();
  for (const method of service.methods) {
    const implementation = options.methods[method.localName];
    if (implementation) implementations.set(method, implementation as Implementation);
  }
  const rest = restServer({
    services: [{ service, unknownFields: "refuse" }],
    policies: new Map(service.methods.map((method) => [method, OPEN])),
    implementations,
    gate: options.gate ?? (async () => undefined),
    maxBodyBytes: options.maxBodyBytes ?? 1_000_000,
    budget: options.budget ?? new BodyBudget(bodyBudget),
    observe,
    ...(options.keepAliveMs === undefined ? {} : { keepAliveMs: options.keepAliveMs }),
  });
  const handler = createHandler({
    routes: new Map(),
    pages: new Map(),
    rest,
    observe,
    drawRequestId: () => "req_test",
    log: { error: (details: object) => ended.push({ rpc: "failed", code: -1, failure: details }) } as never,
  });
  const listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    handler,
    ...badRequestAnswers(() => "req_test"),
  });
  const { port } = await listener.open();
  return { url: `http://127.0.0.1:${port}`, ended, stop: () => listener.close(0) };
}
