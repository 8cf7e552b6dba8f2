import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
} from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { ApiCall } from "../../api/api-call.ts";
import { CallerGone, KNOWN_ENCODINGS } from "../../codec/body.ts";
import type { BodyBudget } from "../../codec/body-budget.ts";
import { RestProblem } from "../../codec/problem.ts";
import { maxBodyBytesOf, SMALL_BODY_BYTES } from "../../rules/body-limits.ts";
import { type Policy, PolicyError } from "../../rules/policy.ts";
import { validateRequest } from "../../rules/validate.ts";
import { ApiCallView } from "../api-call-view.ts";
import { toKnownError } from "../errors/known-error.ts";
import { errorBody } from "../errors/rest-error-body.ts";
import type { Gate } from "../gate/gate.ts";
import type { HttpRequest, HttpResponse } from "../http.ts";
import type { Observe } from "../observe.ts";
import { RunningCalls } from "../running-calls.ts";
import { stopBody } from "../stop-body.ts";
import { chooseEncoding, compress, isWorthCompressing } from "./compress.ts";
import { readRequest } from "./read-request.ts";
import { RestCall } from "./rest-call.ts";
import { type Endpoint, type RestRoute, type RestService, restRoutes } from "./routes.ts";
import { KEEP_ALIVE_MS, sendEvents } from "./sse.ts";
import type { RouteTrie } from "./trie.ts";

/** The function that runs a method, the same for every protocol. */
export type Implementation = (request: Message, call: ApiCall) => unknown;

type RestOptions = {
  readonly services: readonly RestService[];
  readonly policies: ReadonlyMap<DescMethod, Policy>;
  readonly implementations: ReadonlyMap<DescMethod, Implementation>;
  readonly gate: Gate;
  /** The configured limit; a method whose rules allow less has a lower one. */
  readonly maxBodyBytes: number;
  readonly budget: BodyBudget;
  /** Aborts the calls that are still running at the end of a drain. */
  readonly shutdownSignal: AbortSignal;
  readonly observe: Observe;
  readonly keepAliveMs?: number;
};

export type ServeRest = (
  request: HttpRequest,
  response: HttpResponse,
  path: string,
  requestId: string,
) => Promise<void>;

/** Unknown addresses also require a key: a caller without one cannot find out which routes exist. */
const NO_ROUTE: Policy = { access: "developer", scope: undefined, rateLimited: false, metered: false };

/**
 * REST directly on node:http and node:http2, with the same gate, rules and services as the other protocols.
 */
export function restServer(options: RestOptions): ServeRest {
  const trie = restRoutes(options.services);
  checkPolicies(trie, options.policies);
  const running = new RunningCalls(options.shutdownSignal);
  const maxBodyBytes = new Map(
    options.services
      .flatMap(({ service }) => service.methods)
      .map((method) => [method, maxBodyBytesOf(method.input, options.maxBodyBytes)]),
  );
  return async (request, response, path, requestId) => {
    const startedAt = performance.now();
    const match = findRoute(trie, request.method ?? "", path);
    const endpoint = match.route?.usual ?? match.route?.selected?.endpoint;
    const policy = endpoint ? (options.policies.get(endpoint.method) ?? NO_ROUTE) : NO_ROUTE;
    const name = endpoint ? rpcName(endpoint) : "none";
    const maxBytes = (endpoint && maxBodyBytes.get(endpoint.method)) ?? SMALL_BODY_BYTES;
    const call = new RestCall(name, policy, maxBytes, request, response, requestId);
    let code: Code | 0 = 0;
    const place = running.enter(call);
    try {
      await options.gate(call);
      if (match.route) await run(match.route, match.segments, call, request, response, options);
      else answerWithoutRoute(match.allowed, call, request, response);
    } catch (error) {
      stopBody(request, response);
      code = refuse(error, call);
    } finally {
      running.leave(place);
    }
    options.observe(call, code, startedAt);
  };
}

async function run(
  route: RestRoute,
  segments: readonly string[],
  call: RestCall,
  request: HttpRequest,
  response: HttpResponse,
  options: RestOptions,
): Promise<void> {
  const limits = { maxBytes: call.maxBodyBytes, budget: options.budget, sender: call.key?.accountId };
  const asked = await readRequest(route, segments, queryOf(request), request, limits);
  call.rpc = rpcName(asked.endpoint);
  validateRequest(asked.endpoint.method.input, asked.message);
  const implementation = options.implementations.get(asked.endpoint.method);
  if (!implementation) throw new Error(`${call.rpc} has no implementation`);
  await answer(
    asked.endpoint,
    implementation(asked.message, new ApiCallView(call)),
    call,
    request,
    response,
    options,
  );
}

/** The gate runs before the body selects one of two methods, so both must have the same policy. */
function checkPolicies(trie: RouteTrie<RestRoute>, policies: RestOptions["policies"]): void {
  for (const { usual, selected } of trie.routes()) {
    const [one, other] = [usual, selected?.endpoint].map(
      (endpoint) => endpoint && policies.get(endpoint.method),
    );
    const name = rpcName((usual ?? selected?.endpoint) as Endpoint);
    if (!one && !other) throw new PolicyError(`${name} is served but has no policy`);
    if (one && other && JSON.stringify(one) !== JSON.stringify(other)) {
      throw new PolicyError(`${name} shares its route with a method of another policy`);
    }
  }
}

type Match = {
  readonly route: RestRoute | undefined;
  readonly allowed: readonly string[];
  readonly segments: readonly string[];
};

function findRoute(trie: RouteTrie<RestRoute>, verb: string, path: string): Match {
  const match = trie.find(
    path,
    (routes) => routes.get(verb) ?? (verb === "HEAD" ? routes.get("GET") : undefined) ?? routes.get("*"),
  );
  if (match) return { route: match.picked, allowed: [], segments: match.segments };
  const verbs = new Set<string>();
  trie.find(path, (routes) => {
    for (const other of routes.keys()) verbs.add(other);
    return undefined;
  });
  if (verbs.size === 0) return { route: undefined, allowed: [], segments: [] };
  if (verbs.has("GET")) verbs.add("HEAD");
  return { route: undefined, allowed: [...verbs, "OPTIONS"], segments: [] };
}

/**
 * OPTIONS lists the verbs of an address. It requires a key like every other verb, and sends no CORS headers.
 */
function answerWithoutRoute(
  allowed: readonly string[],
  call: RestCall,
  request: HttpRequest,
  response: HttpResponse,
): void {
  if (allowed.length === 0) throw new RestProblem("not_found", "There is nothing at this address.");
  const list = allowed.join(", ");
  if (request.method !== "OPTIONS") {
    const message = `This address does not take ${request.method}, but ${list}.`;
    throw new RestProblem("method_not_allowed", message, { allowed });
  }
  stopBody(request, response);
  call.setResponseHeader("allow", list);
  call.sendNothing();
}

async function answer(
  endpoint: Endpoint,
  result: unknown,
  call: RestCall,
  request: HttpRequest,
  response: HttpResponse,
  options: RestOptions,
): Promise<void> {
  const { output } = endpoint.method;
  if (endpoint.method.methodKind === "unary") {
    const text = endpoint.write(asMessage(output, await result));
    await sendCompressed(call, text, request.headers["accept-encoding"]);
    return;
  }
  const messages = (result as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  const first = await messages.next();
  if (response.headersSent) {
    await messages.return?.();
    return;
  }
  call.setResponseHeader("content-type", "text/event-stream");
  call.setResponseHeader("cache-control", "no-store");
  call.setResponseHeader("x-accel-buffering", "no");
  call.writeHead(200);
  await sendEvents(response as Parameters<typeof sendEvents>[0], first, messages, {
    write: (message) => endpoint.write(asMessage(output, message)),
    keepAliveMs: options.keepAliveMs ?? KEEP_ALIVE_MS,
    signal: call.signal,
    errorJson: (error) => errorBody(toKnownError(error), call.requestId),
  });
}

function asMessage(desc: DescMessage, value: unknown): Message {
  return create(desc, value as never);
}

async function sendCompressed(call: RestCall, text: string, accepted: string | string[] | undefined) {
  // Also set on uncompressed responses: another caller may get a compressed one.
  if (isWorthCompressing(text)) call.setResponseHeader("vary", "accept-encoding");
  const encoding = chooseEncoding(accepted, text);
  if (encoding === undefined) {
    call.sendJson(200, text);
    return;
  }
  const bytes = await compress(encoding, text);
  call.setResponseHeader("content-encoding", encoding);
  call.sendJson(200, bytes);
}

/** Sends an error, once; returns the code for the log if the failure itself does not have it. */
function refuse(error: unknown, call: RestCall): Code | 0 {
  if (error instanceof CallerGone) return Code.Canceled;
  const known = toKnownError(error);
  call.failure = error instanceof RestProblem ? known : error;
  if (error instanceof RestProblem) {
    if (error.allowed.length > 0) call.setResponseHeader("allow", error.allowed.join(", "));
    if (error.kind === "unsupported_media_type") call.setResponseHeader("accept-encoding", KNOWN_ENCODINGS);
  }
  call.sendError(known);
  return 0;
}

function rpcName({ method }: Endpoint): string {
  return `${method.parent.typeName}/${method.name}`;
}

function queryOf(request: HttpRequest): string {
  const target = request.url ?? "";
  const start = target.indexOf("?");
  return start < 0 ? "" : target.slice(start + 1);
}

/** The methods of a service with their implementations. */
export function implementationsOf(service: DescService, methods: object): [DescMethod, Implementation][] {
  return service.methods.flatMap((method) => {
    const implementation = (methods as Record<string, Implementation | undefined>)[method.localName];
    return implementation ? [[method, implementation] as [DescMethod, Implementation]] : [];
  });
}
