import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MethodFunction } from "../../api/define-service.ts";
import { validateRequest } from "../../rules/validate.ts";
import type { HttpResponse } from "../http/message.ts";
import { type CallTransport, ServiceCall } from "../service-call.ts";
import { failRpc, type RpcCall, rpcCallOf } from "./rpc-routes.ts";

/** Adds a service to Connect's router. Its methods get an ApiCall, not Connect's context. */
export function bindService(
  router: ConnectRouter,
  service: DescService,
  methods: Readonly<Record<string, MethodFunction>>,
): void {
  const bound: Record<string, unknown> = {};
  for (const method of service.methods) {
    const invoke = methods[method.localName];
    if (!invoke) continue;
    const rpc = `${service.typeName}/${method.name}`;
    bound[method.localName] = bindMethod(
      method,
      (message, context, { call, admitted, response, observation, share }) => {
        const transport = new RpcTransport(response, context);
        return invoke(message as never, new ServiceCall(rpc, call, admitted, transport, observation, share));
      },
    );
  }
  router.service(service, bound as ServiceImpl<typeof service>);
}

/** Runs a method: its request is validated, and its errors are converted to errors for the caller. */
export function bindMethod(
  method: DescMethod,
  invoke: (message: Message, context: HandlerContext, rpc: RpcCall) => unknown,
) {
  const start = (request: Message, context: HandlerContext, rpc: RpcCall) => {
    const message = rpc.message ?? request;
    validateRequest(method.input, message);
    return invoke(message, context, rpc);
  };
  if (method.methodKind !== "unary") {
    return async function* (request: Message, context: HandlerContext) {
      const rpc = rpcCallOf(context.values);
      try {
        yield* start(request, context, rpc) as AsyncIterable<unknown>;
      } catch (error) {
        throw failRpc(error, rpc.response, rpc.observation);
      }
    };
  }
  return async (request: Message, context: HandlerContext) => {
    const rpc = rpcCallOf(context.values);
    try {
      return await start(request, context, rpc);
    } catch (error) {
      throw failRpc(error, rpc.response, rpc.observation);
    }
  };
}

class RpcTransport implements CallTransport {
  readonly #response: HttpResponse;
  readonly #context: HandlerContext;

  constructor(response: HttpResponse, context: HandlerContext) {
    this.#response = response;
    this.#context = context;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  remainingMs(): number | undefined {
    return this.#context.timeoutMs();
  }

  setHeader(name: string, value: string): void {
    if (!this.#response.headersSent) this.#response.setHeader(name, value);
  }
}
