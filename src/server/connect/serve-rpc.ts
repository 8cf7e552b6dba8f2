import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { CallerDisconnected } from "../../codec/body.ts";
import type { BodyBudget, BodyShare } from "../../codec/body-budget.ts";
import { fromRequestError } from "../errors/connect-error.ts";
import type { Gate } from "../gate/gate.ts";
import { passGate } from "../gate/pass-gate.ts";
import { type HttpRequest, type HttpResponse, type ServePath, stopBody } from "../http/message.ts";
import { HttpCall, type IncomingCall } from "../incoming-call.ts";
import type { Observation, Observe } from "../observation.ts";
import { readRpcRequest } from "../rpc/read-rpc-request.ts";
import { envelope, HEAD_BYTES, isKnownEncoding, type RpcForm } from "../rpc/wire.ts";
import { RunningCalls } from "../service-call.ts";
import { respondRpc } from "./respond-rpc.ts";
import {
  failRpc,
  isRpcRefused,
  type RpcCall,
  type RpcRoute,
  type RpcRouteOptions,
  rpcCallKey,
  rpcRoutes,
} from "./rpc-routes.ts";
import { type OpenRpcOptions, openRpcServer } from "./serve-open-rpc.ts";
import {
  abortOnClose,
  checkQueryMessage,
  decodedHeaders,
  rpcFormOf,
  timeoutMsOf,
  universalRequest,
} from "./universal-request.ts";

type RpcOptions = RpcRouteOptions & {
  readonly gate: Gate;
  readonly budget: BodyBudget;
  /** Aborts the calls that are still running at the end of a drain. */
  readonly shutdownSignal: AbortSignal;
  readonly observe: Observe;
};

/** gRPC, gRPC-Web and Connect, by the path of each method. */
export function rpcServer(options: RpcOptions & OpenRpcOptions): Map<string, ServePath> {
  const paths = openRpcServer(options);
  const running = new RunningCalls(options.shutdownSignal);
  for (const route of rpcRoutes(options)) {
    paths.set(route.handler.requestPath, (request, response, requestId) =>
      serveRpc(options, running, route, request, response, requestId),
    );
  }
  return paths;
}

/** Gate and read here; validate, invoke and encode in Connect's handler, see bindMethod; respond here. */
async function serveRpc(
  options: RpcOptions,
  running: RunningCalls,
  route: RpcRoute,
  request: HttpRequest,
  response: HttpResponse,
  requestId: string,
): Promise<void> {
  response.setHeader("x-request-id", requestId);
  if (isRpcRefused(route.handler, request, response)) return;
  const form = rpcFormOf(request);
  const maxBodyBytes = route.maxBodyBytes + (form.isEnveloped ? HEAD_BYTES : 0);
  const call = new HttpCall(form.protocol, route.policy, maxBodyBytes, request, requestId);
  const observation = options.observe(call, route.rpc);
  const aborted = abortOnClose(response);
  const slot = running.insert(aborted);
  let code: Code | 0 = Code.Canceled;
  let share: BodyShare | undefined;
  try {
    const received = await receiveRpc(options, route, form, call, request, response, observation);
    share = received instanceof ConnectError ? undefined : received.share;
    const headers = decodedHeaders(request, performance.now() - observation.startedAt);
    const values = createContextValues().set(rpcCallKey, received);
    const universal = universalRequest(request, headers, emptyMessage(form), aborted.signal, values);
    code = await respondRpc(await route.handler(universal), form.protocol, request, response, observation);
  } catch (error) {
    if (!(error instanceof CallerDisconnected)) throw error;
  } finally {
    share?.release();
    running.remove(slot);
    observation.end(code);
  }
}

/** The call with its message, or the error that ends it. */
async function receiveRpc(
  options: RpcOptions,
  route: RpcRoute,
  form: RpcForm,
  call: IncomingCall,
  request: HttpRequest,
  response: HttpResponse,
  observation: Observation,
): Promise<RpcCall | ConnectError> {
  const timeoutMs = timeoutMsOf(request.headers, form.protocol);
  const remainingMs = timeoutMs && timeoutMs - (performance.now() - observation.startedAt);
  let share: BodyShare | undefined;
  try {
    const admitted = await passGate(options.gate, call, response, observation, remainingMs);
    share = options.budget.openShare(admitted.key?.accountId);
    const limits = { maxBytes: call.maxBodyBytes, share };
    // Connect reads the query of a GET, and refuses unknown compressions.
    const isReadHere = request.method === "POST" && isKnownEncoding(request.headers[form.encodingHeader]);
    if (request.method === "GET") checkQueryMessage(request);
    const message = isReadHere ? await readRpcRequest(route, form, request, limits) : undefined;
    return { call, admitted, message, response, observation, share };
  } catch (error) {
    share?.release();
    if (error instanceof CallerDisconnected) throw error;
    stopBody(request, response);
    return failRpc(fromRequestError(error), response, observation);
  }
}

const JSON_MESSAGE = Buffer.from("{}");
const BINARY_MESSAGE = Buffer.alloc(0);
const EMPTY = { json: bodyOf(JSON_MESSAGE), binary: bodyOf(BINARY_MESSAGE) };
const ENVELOPED = { json: bodyOf(envelope(0, JSON_MESSAGE)), binary: bodyOf(envelope(0, BINARY_MESSAGE)) };

/** The body that Connect gets when the message is already decoded. */
function emptyMessage({ isEnveloped, isJson }: RpcForm): AsyncIterable<Uint8Array> {
  return (isEnveloped ? ENVELOPED : EMPTY)[isJson ? "json" : "binary"];
}

function bodyOf(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  return {
    async *[Symbol.asyncIterator]() {
      yield bytes;
    },
  };
}
