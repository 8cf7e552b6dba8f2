import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { DomainError } from "../domain/errors.ts";
import type { Call } from "../gate/call.ts";
import { callOf } from "../interceptors/call-context.ts";
import type { ServiceMethods } from "../services/services.ts";

type Method = (request: unknown, call: Call) => unknown;

/** Puts a service on the router: its methods get the Call, not Connect's context. */
export function bindService<Service extends DescService>(
  router: ConnectRouter,
  service: Service,
  methods: ServiceMethods<Service>,
): void {
  const named = methods as Record<string, Method | undefined>;
  const bound = service.methods.map((method) => [method.localName, bind(method, named[method.localName])]);
  router.service(service, Object.fromEntries(bound) as ServiceImpl<Service>);
}

function bind(method: DescMethod, implementation: Method | undefined) {
  if (implementation) {
    return (request: unknown, context: HandlerContext) => {
      const call = callOf(context.values);
      call.signal = context.signal;
      call.remainingMs = () => context.timeoutMs();
      return implementation(request, call);
    };
  }
  const refuse = () => {
    throw new DomainError("unimplemented", {
      message: `${method.parent.typeName}.${method.name} is not available yet.`,
    });
  };
  return method.methodKind === "unary"
    ? async () => refuse()
    : async function* () {
        yield refuse();
      };
}
