// The same RPC with the same gate and the same admission in PostgreSQL, on connect-node as it comes: what the rest of
// our server adds (rules, log, metrics, deadlines, limits of the transport) is left out.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type ConnectRouter, createContextValues } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { MeService } from "../gen/vx/v1/me_pb.js";
import type { Call } from "../src/gate/call.ts";
import { FailedAuthentications } from "../src/gate/failed-authentications.ts";
import { developerGate } from "../src/gate/gate.ts";
import { callKey, callOf } from "../src/interceptors/call-context.ts";
import { policiesOf } from "../src/policy/policy.ts";
import { getMe } from "../src/services/get-me.ts";
import { Admitter } from "../src/store/admit.ts";
import { Database } from "../src/store/database.ts";
import { headerValues } from "../src/transport/http.ts";

const PIPELINES = 2;

const database = new Database(
  { kind: "url", url: process.env.DATABASE_URL ?? "" },
  {
    connections: PIPELINES,
    statementTimeoutMs: 5_000,
    maxStatements: 2_048,
    maxWaitMs: 3_000,
    role: "vx_app",
    name: "bench",
  },
);
const admitter = new Admitter(database, { pipelines: PIPELINES, maxWaiting: 16_384 });
const gate = developerGate({
  admit: (request) => admitter.admit(request),
  failures: new FailedAuthentications(0, Date.now),
});
const policy = policiesOf([MeService]).get(MeService.method.getMe);
if (!policy) throw new Error("GetMe has no policy");
const { signal } = new AbortController();

function createCall(request: IncomingMessage): Call {
  return {
    rpc: "vx.v1.MeService/GetMe",
    policy: policy as NonNullable<typeof policy>,
    protocol: "connect",
    requestId: "",
    remoteAddress: request.socket.remoteAddress ?? "",
    target: request.url ?? "",
    contentLength: undefined,
    maxBodyBytes: 0,
    headers: (name) => headerValues(request, name),
    setResponseHeader: () => undefined,
    signal,
    remainingMs: () => undefined,
    key: undefined,
    failure: undefined,
  };
}

const server = createServer(
  { keepAliveTimeout: 60_000 },
  connectNodeAdapter({
    contextValues: (request) => createContextValues().set(callKey, createCall(request as IncomingMessage)),
    requestGate: (context) => gate(callOf(context.values)),
    routes: (router: ConnectRouter) =>
      router.service(MeService, { getMe: (request, context) => getMe(request, callOf(context.values)) }),
  }),
);
server.listen(0, "127.0.0.1", () => {
  console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on("SIGTERM", () => process.exit(0));
