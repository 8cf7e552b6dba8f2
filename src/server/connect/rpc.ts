import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import type { BodyBudget } from "../../codec/body-budget.ts";
import { Readers } from "../../codec/json/reader.ts";
import { DomainError, type Reason } from "../../domain/errors.ts";
import { maxBodyBytesOf, SMALL_BODY_BYTES } from "../../rules/body-limits.ts";
import { type Policy, PolicyError } from "../../rules/policy.ts";
import { refuseRpc } from "../errors/refusal.ts";
import { translate } from "../errors/translate-errors.ts";
import { MAX_OPEN_STREAM_BYTES, MAX_OPEN_UNARY_BYTES, openBody } from "../flood/open-body.ts";
import type { Call, Protocol } from "../gate/call.ts";
import type { Gate } from "../gate/gate.ts";
import { contentLengthOf, type HttpRequest, type HttpResponse, headerValues } from "../http.ts";
import { RunningCalls } from "../running-calls.ts";
import { callKey, callOf } from "./call-context.ts";
import { acceptCompression, isKnownEncoding } from "./compression.ts";
import { decodedKey } from "./decoded.ts";
import { lowerLongDeadlines } from "./long-deadlines.ts";
import { RpcBody, type RpcInput } from "./rpc-body.ts";
import { writeUniversalResponse } from "./rpc-response.ts";

/** An RPC at its path, for gRPC, gRPC-Web and Connect. */
export type RpcRoute = {
  readonly handler: UniversalHandler;
  /** Undefined for the standard services that need no key: health and reflection. */
  readonly policy: Policy | undefined;
  readonly running: RunningCalls;
  /** How the request is decoded if Connect does not decode it itself. */
  readonly input: RpcInput | undefined;
};

type RpcOptions = {
  /** Our own services: every method has a policy and passes the gate. */
  readonly routes: (router: ConnectRouter) => void;
  /** Standard services that need no key. */
  readonly openRoutes: (router: ConnectRouter) => void;
  readonly policies: ReadonlyMap<DescMethod, Policy>;
  readonly gate: Gate;
  readonly interceptors: Interceptor[];
  /** The configured limit; a method whose rules allow less has a lower one. */
  readonly maxBodyBytes: number;
  readonly budget: BodyBudget;
  /** Aborts the calls that are still running at the end of a drain. */
  readonly shutdownSignal: AbortSignal;
  /** Aborts the calls that would delay a drain: health watches. */
  readonly drainSignal: AbortSignal;
};

export function rpcRoutes(options: RpcOptions): Map<string, RpcRoute> {
  const { gate, policies, maxBodyBytes, budget } = options;
  const gated = createConnectRouter({
    acceptCompression,
    // Connect itself only reads the query of a GET.
    readMaxBytes: SMALL_BODY_BYTES,
    interceptors: options.interceptors,
    requestGate: (context) => passGate(gate, callOf(context.values)),
  });
  options.routes(gated);
  // Anyone may request these responses, so compressing each one is not worth its cost.
  const open = createConnectRouter({
    readMaxBytes: SMALL_BODY_BYTES,
  });
  options.openRoutes(open);
  const routes = new Map<string, RpcRoute>();
  // Connect callers may send fields of a later version, as gRPC callers may.
  const readers = new Readers("ignore");
  const running = new RunningCalls(options.shutdownSignal);
  const openRunning = new RunningCalls(options.drainSignal);
  for (const handler of gated.handlers) {
    const policy = policies.get(handler.method);
    if (!policy) throw new PolicyError(`${handler.requestPath} is served but has no policy`);
    const { method } = handler;
    const maxBytes = maxBodyBytesOf(method.input, maxBodyBytes);
    const input = { method, maxBytes, readJson: readers.of(method.input), budget };
    routes.set(handler.requestPath, { handler, policy, running, input });
  }
  for (const handler of open.handlers)
    routes.set(handler.requestPath, { handler, policy: undefined, running: openRunning, input: undefined });
  return routes;
}

async function passGate(gate: Gate, call: Call): Promise<void> {
  try {
    await gate(call);
  } catch (error) {
    throw translate(error, call);
  }
}

/** The error to send as a plain HTTP response if the route cannot handle the request; otherwise undefined. */
export function checkRpcRequest(route: RpcRoute, request: HttpRequest): DomainError | undefined {
  const { handler } = route;
  const method = request.method ?? "";
  if (!handler.allowedMethods.includes(method)) {
    return new DomainError("method_not_allowed", {
      message: `${handler.requestPath} takes ${handler.allowedMethods.join(" and ")}.`,
    });
  }
  const type = request.headers["content-type"];
  if (method === "POST" && (type === undefined || !handler.supportedContentType(type))) {
    return new DomainError("unsupported_media_type", {
      message:
        "Send application/json or application/proto for Connect, application/grpc for gRPC, application/grpc-web for gRPC-Web.",
    });
  }
  return undefined;
}

function protocolOf(request: HttpRequest): Protocol {
  const type = request.headers["content-type"] ?? "";
  if (type.startsWith("application/grpc-web")) return "grpc-web";
  return type.startsWith("application/grpc") ? "grpc" : "connect";
}

export function createCall(
  route: RpcRoute,
  policy: Policy,
  request: HttpRequest,
  response: HttpResponse,
  requestId: string,
): Call {
  return {
    rpc: route.handler.requestPath.slice(1),
    signal: NEVER,
    remainingMs: () => undefined,
    policy,
    protocol: protocolOf(request),
    requestId,
    remoteAddress: request.socket.remoteAddress ?? "",
    target: request.url ?? "",
    contentLength: contentLengthOf(request),
    maxBodyBytes: route.input?.maxBytes ?? SMALL_BODY_BYTES,
    headers: (name) => headerValues(request, name),
    setResponseHeader: (name, value) => {
      if (!response.headersSent) response.setHeader(name, value);
    },
    key: undefined,
    failure: undefined,
    model: undefined,
    generation: undefined,
  };
}

/** The signal of a call until its service runs; then bindService sets the one of Connect's context. */
const NEVER = new AbortController().signal;

/**
 * Refusals that Connect sends without a body and checkRpcRequest does not see: the encoding in the query of a
 * GET.
 */
const BARE_REFUSALS: Record<number, Reason> = { 405: "method_not_allowed", 415: "unsupported_media_type" };

/** Runs the RPC and sends its response. Resolves to the gRPC code of the call. */
export async function serveRpc(
  route: RpcRoute,
  call: Call | undefined,
  request: HttpRequest,
  response: HttpResponse,
): Promise<Code | 0> {
  const aborted = new AbortController();
  const place = route.running.enter(aborted);
  response.once("close", () => {
    // Over HTTP/2 "writableFinished" is also true for a response that was cut off.
    if (!response.writableEnded) aborted.abort(new ConnectError("the caller went away", Code.Canceled));
  });
  const body =
    call && route.input && request.method === "POST"
      ? new RpcBody(route.input, request, response, call)
      : undefined;
  const maxOpenBytes =
    route.handler.method.methodKind === "unary" ? MAX_OPEN_UNARY_BYTES : MAX_OPEN_STREAM_BYTES;
  const universal: UniversalServerRequest = {
    httpVersion: request.httpVersion,
    method: request.method ?? "",
    // Only the query is read. The Host header is caller input and may be anything.
    url: `http://vx${request.url}`,
    header: toWebHeaders(request, body !== undefined),
    body: body ?? (call ? bodyOf(request) : openBody(request, maxOpenBytes)),
    signal: aborted.signal,
    contextValues: createContextValues().set(callKey, call).set(decodedKey, body),
  };
  try {
    const answer = await route.handler(universal);
    const reason = BARE_REFUSALS[answer.status];
    if (answer.body !== undefined || reason === undefined)
      return await writeUniversalResponse(answer, response, call);
    const error = new DomainError(reason);
    if (call) call.failure = error;
    refuseRpc(request, response, error);
    return Code.Unknown;
  } finally {
    route.running.leave(place);
  }
}

async function* bodyOf(request: HttpRequest): AsyncIterable<Uint8Array> {
  try {
    yield* request as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw new ConnectError("the caller went away", Code.Canceled, undefined, undefined, error);
  }
}

function toWebHeaders(request: HttpRequest, isDecoded: boolean): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    if (typeof value === "string") headers.append(name, value);
    else for (const item of value) headers.append(name, item);
  }
  if (isDecoded) {
    // These headers describe the bytes that were sent, not the message that replaces them.
    headers.delete("content-length");
    if (isKnownEncoding(headers.get("content-encoding"))) headers.delete("content-encoding");
  }
  lowerLongDeadlines(headers);
  return headers;
}
