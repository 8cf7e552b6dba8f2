import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MethodFunction } from "../../api/define-service.ts";
import { ApiCallView } from "../api-call-view.ts";
import { callOf } from "./call-context.ts";

/** Adds a service to the router. Its methods get an ApiCall, not Connect's context. */
export function bindService(
  router: ConnectRouter,
  service: DescService,
  methods: Readonly<Record<string, MethodFunction>>,
): void {
  const bound = Object.entries(methods).map(([name, method]) => [name, bind(method)]);
  router.service(service, Object.fromEntries(bound) as ServiceImpl<typeof service>);
}

function bind(method: MethodFunction) {
  return (request: never, context: HandlerContext) => {
    const call = callOf(context.values);
    call.signal = context.signal;
    call.remainingMs = () => context.timeoutMs();
    return method(request, new ApiCallView(call));
  };
}
