import type {
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Meter } from "../billing/meter.ts";
import type { ApiCall } from "./api-call.ts";
import type { Deps } from "./deps.ts";

/** The dependencies that a service creates its methods from. */
export type ApiParts = { readonly deps: Deps; readonly meter: Meter };

/** The methods of a service, independent of the protocol. Each method is required. */
type MethodsOf<Service extends DescService> = {
  [Name in keyof Service["method"]]: Service["method"][Name] extends DescMethodUnary<
    infer Input,
    infer Output
  >
    ? (request: MessageShape<Input>, call: ApiCall) => Promise<MessageInitShape<Output>>
    : Service["method"][Name] extends DescMethodServerStreaming<infer Input, infer Output>
      ? (request: MessageShape<Input>, call: ApiCall) => AsyncIterable<MessageInitShape<Output>>
      : never;
};

/** A method without its types, as servers call it. */
export type MethodFunction = (request: never, call: ApiCall) => unknown;

export type ServiceDefinition<Parts = ApiParts> = {
  readonly service: DescService;
  /** Whether a REST request with a field that the .proto does not have is refused. */
  readonly unknownFields: "refuse" | "ignore";
  /** By the local name of the method. */
  readonly methods: (parts: Parts) => Readonly<Record<string, MethodFunction>>;
};

/** A service with its methods; a method that is missing does not compile. */
export function defineService<Service extends DescService, Parts = ApiParts>(
  service: Service,
  methods: (parts: Parts) => MethodsOf<Service>,
  unknownFields: ServiceDefinition["unknownFields"] = "refuse",
): ServiceDefinition<Parts> {
  return { service, unknownFields, methods };
}
