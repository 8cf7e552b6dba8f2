import { setTimeout as sleep } from "node:timers/promises";
import {
  createRegistry,
  type DescFile,
  type DescService,
  type FileRegistry,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import { type Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { ApiCall } from "../../../src/api/define-service.ts";
import type { Call } from "../../../src/server/call.ts";
import { createUntyped, messageType } from "../descriptors.ts";

const PACKAGE = "connectrpc.conformance.v1";
export const SERVICE = `${PACKAGE}.ConformanceService`;

type Header = { readonly name: string; readonly value: readonly string[] };
type ErrorDefinition = { readonly code: Code; readonly message?: string; readonly details: readonly Any[] };
type Definition = {
  readonly responseHeaders: readonly Header[];
  readonly responseTrailers: readonly Header[];
  readonly responseDelayMs: number;
};
type UnaryRequest = Message & {
  readonly responseDefinition?: Definition & {
    readonly response:
      | { readonly case: "responseData"; readonly value: Uint8Array }
      | { readonly case: "error"; readonly value: ErrorDefinition }
      | { readonly case: undefined };
  };
};
type StreamRequest = Message & {
  readonly fullDuplex?: boolean;
  readonly responseDefinition?: Definition & { readonly responseData: readonly Uint8Array[]; readonly error?: ErrorDefinition };
};

/** What the service uses of Connect's context; methods with one request have the same, see contextOf(). */
type Context = Pick<HandlerContext, "requestHeader" | "responseHeader" | "responseTrailer"> & {
  readonly timeoutMs: () => number | undefined;
  /** The query of a GET. */
  readonly query: URLSearchParams | undefined;
};
type Implementation = (request: never, context: HandlerContext) => unknown;

/** The service that the suite calls. Each request defines its response, which also repeats the request. */
export class ConformanceService {
  readonly #registry: FileRegistry;

  constructor(registry: FileRegistry) {
    this.#registry = registry;
  }

  /** Methods with one request message, served like the methods of the product. */
  methods(): Record<string, (request: never, call: ApiCall) => unknown> {
    const unary = async (request: UnaryRequest, call: ApiCall) => {
      const exchange = exchangeOf(call);
      const context = contextOf(exchange);
      try {
        return await this.#unary([request], context);
      } finally {
        setResponseHeaders(exchange, context);
      }
    };
    return { unary, idempotentUnary: unary, serverStream: this.#serverStream.bind(this) };
  }

  /** The types of google.protobuf.Any in requests and responses. */
  get registry(): Registry {
    return createRegistry(this.#service().file as DescFile);
  }

  async *#serverStream(request: StreamRequest, call: ApiCall): AsyncGenerator<object> {
    const exchange = exchangeOf(call);
    const context = contextOf(exchange);
    try {
      for await (const response of this.#stream([request], context)) {
        setResponseHeaders(exchange, context);
        yield response;
      }
    } finally {
      setResponseHeaders(exchange, context);
    }
  }

  #service(): DescService {
    const service = this.#registry.getService(SERVICE);
    if (!service) throw new Error(`the suite has no service ${SERVICE}`);
    return service;
  }

  /** Methods with a stream of request messages, served like reflection. */
  addStreamsTo(router: ConnectRouter): void {
    const clientStream = async (requests: AsyncIterable<Message>, context: HandlerContext) =>
      this.#unary((await collect(requests)) as UnaryRequest[], connectContext(context));
    const bidiStream = (requests: AsyncIterable<Message>, context: HandlerContext) =>
      this.#bidiStream(requests as AsyncIterable<StreamRequest>, connectContext(context));
    this.#add(router, { clientStream, bidiStream });
  }

  #add(router: ConnectRouter, methods: Record<string, Implementation>): void {
    const service = this.#service();
    const jsonOptions = { registry: this.registry };
    for (const [name, implementation] of Object.entries(methods)) {
      const method = service.method[name];
      if (!method) throw new Error(`${SERVICE} has no method ${name}`);
      router.rpc(method, implementation as never, { jsonOptions });
    }
  }

  async #unary(requests: readonly UnaryRequest[], context: Context): Promise<object> {
    const definition = requests[0]?.responseDefinition;
    const requestInfo = this.#requestInfo(requests, context);
    setHeaders(definition, context);
    await sleep(definition?.responseDelayMs ?? 0);
    const response = definition?.response;
    if (response?.case === "error") throw this.#error(response.value, requestInfo);
    const data = response?.case === "responseData" ? response.value : undefined;
    return { payload: { data, requestInfo } };
  }

  async *#stream(requests: readonly StreamRequest[], context: Context): AsyncGenerator<object> {
    const definition = requests[0]?.responseDefinition;
    const requestInfo = this.#requestInfo(requests, context);
    setHeaders(definition, context);
    if (!definition) return;
    for (const [index, data] of definition.responseData.entries()) {
      await sleep(definition.responseDelayMs);
      yield { payload: { data, requestInfo: index === 0 ? requestInfo : undefined } };
    }
    const isEmpty = definition.responseData.length === 0;
    if (definition.error) throw this.#error(definition.error, isEmpty ? requestInfo : undefined);
  }

  async *#bidiStream(requests: AsyncIterable<StreamRequest>, context: Context): AsyncGenerator<object> {
    const unread = requests[Symbol.asyncIterator]();
    const first = await unread.next();
    if (first.done) return;
    if (!first.value.fullDuplex) {
      const rest = await collect({ [Symbol.asyncIterator]: () => unread });
      yield* this.#stream([first.value, ...rest], context);
      return;
    }
    const definition = first.value.responseDefinition;
    setHeaders(definition, context);
    let sent = 0;
    for (let next: IteratorResult<StreamRequest> = first; !next.done; next = await unread.next()) {
      const data = definition?.responseData[sent];
      if (data === undefined) break;
      await sleep(definition?.responseDelayMs);
      const requestInfo = sent++ === 0 ? this.#requestInfo([next.value], context) : { requests: this.#pack([next.value]) };
      yield { payload: { data, requestInfo } };
    }
    if (definition?.error)
      throw this.#error(definition.error, sent === 0 ? this.#requestInfo([first.value], context) : undefined);
  }

  #requestInfo(requests: readonly Message[], context: Context): object {
    const timeoutMs = context.timeoutMs();
    return {
      requestHeaders: toHeaders(context.requestHeader),
      timeoutMs: timeoutMs === undefined ? undefined : BigInt(Math.trunc(timeoutMs)),
      requests: this.#pack(requests),
      connectGetInfo: context.query && { queryParams: toHeaders(context.query) },
    };
  }

  #pack(messages: readonly Message[]): Any[] {
    return messages.map((message) => anyPack(messageType(this.#registry, message.$typeName), message));
  }

  #error({ code, message, details }: ErrorDefinition, requestInfo: object | undefined): ConnectError {
    const error = new ConnectError(message ?? "", code);
    error.details = details.map(({ typeUrl, value }) => ({ type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1), value }));
    if (requestInfo) {
      const desc = messageType(this.#registry, `${PACKAGE}.ConformancePayload.RequestInfo`);
      error.details.push({ desc, value: createUntyped(desc, requestInfo) as never });
    }
    return error;
  }
}

function setHeaders(definition: Definition | undefined, context: Context): void {
  for (const { name, value } of definition?.responseHeaders ?? [])
    for (const item of value) context.responseHeader.append(name, item);
  for (const { name, value } of definition?.responseTrailers ?? [])
    for (const item of value) context.responseTrailer.append(name, item);
}

/** A call with trailers, which REST does not have. */
type RpcCall = Call & { setTrailer(name: string, value: string): void };

function exchangeOf(call: ApiCall): RpcCall {
  return call as unknown as RpcCall;
}

function connectContext(context: HandlerContext): Context {
  return { ...context, query: undefined };
}

function contextOf(exchange: Call): Context {
  const { request, target } = exchange;
  const requestHeader = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (!name.startsWith(":")) requestHeader.append(name, String(value));
  }
  const isGet = target.includes("?");
  return {
    requestHeader,
    responseHeader: new Headers(),
    responseTrailer: new Headers(),
    timeoutMs: () => exchange.remainingMs(),
    query: isGet ? new URLSearchParams(target.slice(target.indexOf("?"))) : undefined,
  };
}

function setResponseHeaders(exchange: RpcCall, { responseHeader, responseTrailer }: Context): void {
  for (const [name, value] of responseHeader) exchange.setHeader(name, value);
  for (const [name, value] of responseTrailer) exchange.setTrailer(name, value);
}

function toHeaders(entries: Iterable<[string, string]>): Header[] {
  return [...entries].map(([name, value]) => ({ name, value: [value] }));
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
