import type { DescField, DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type { ApiCall } from "../../api/api-call.ts";
import type { MethodFunction } from "../../api/define-service.ts";
import { type Reader, Readers, type UnknownFields } from "../../codec/json/reader.ts";
import { fieldWriterOf, type Writer, writerOf } from "../../codec/json/writer.ts";
import { maxBodyBytesOf } from "../../rules/body-limits.ts";
import { type Policy, PolicyError } from "../../rules/policy.ts";
import { type HttpBinding, httpBindings } from "./http-rule.ts";
import { DuplicateRouteError, RouteTrie } from "./trie.ts";

/** A method at an address, with everything that can be prepared before the first call. */
export type Endpoint = {
  /** "vx.v1.MeService/GetMe" */
  readonly rpc: string;
  readonly binding: HttpBinding;
  readonly method: DescMethod;
  readonly policy: Policy;
  readonly maxBodyBytes: number;
  readonly readBody: Reader;
  readonly readBodyField: ReturnType<Readers["field"]> | undefined;
  readonly invoke: (message: Message, call: ApiCall) => unknown;
  readonly write: Writer;
};

export type RestRoute = {
  /** The method that serves the address, unless the body selects the other one. */
  readonly first: Endpoint;
  /** The method that serves the address if its bool field is set in the body. */
  readonly selected: { readonly by: DescField; readonly endpoint: Endpoint } | undefined;
};

/** A service with its methods, by their local names. */
export type RestService = {
  readonly service: DescService;
  readonly unknownFields: UnknownFields;
  readonly methods: Readonly<Record<string, MethodFunction>>;
};

export type RestRouteOptions = {
  readonly policies: ReadonlyMap<DescMethod, Policy>;
  /** The configured limit; a method whose rules allow less has a lower one. */
  readonly maxBodyBytes: number;
};

type SharedRoute = { usual: Endpoint | undefined; selected: RestRoute["selected"] };

/** The routes of all services; throws, with both names, if two methods have the same route. */
export function restRoutes(
  services: readonly RestService[],
  options: RestRouteOptions,
): RouteTrie<RestRoute> {
  const shared = new Map<string, SharedRoute>();
  for (const service of services) {
    const readers = new Readers(service.unknownFields);
    for (const binding of service.service.methods.flatMap(httpBindings)) {
      const key = `${binding.verb} ${binding.path}`;
      const route = shared.get(key) ?? { usual: undefined, selected: undefined };
      const endpoint = toEndpoint(binding, readers, service, options);
      if (binding.selectedBy) {
        if (route.selected) throw duplicate(route.selected.endpoint, endpoint);
        route.selected = { by: binding.selectedBy, endpoint };
      } else {
        if (route.usual) throw duplicate(route.usual, endpoint);
        route.usual = endpoint;
      }
      shared.set(key, route);
    }
  }
  const trie = new RouteTrie<RestRoute>();
  for (const route of shared.values()) {
    const { template, verb } = firstOf(route).binding;
    trie.insert(template, verb, toRoute(route), ({ first }) => nameOf(first));
  }
  return trie;
}

/** The route of a request. Without one, `allowed` lists the verbs of the address. */
export type RouteMatch = {
  readonly route: RestRoute | undefined;
  readonly allowed: readonly string[];
  readonly segments: readonly string[];
};

export function findRestRoute(trie: RouteTrie<RestRoute>, verb: string, path: string): RouteMatch {
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

function toEndpoint(
  binding: HttpBinding,
  readers: Readers,
  { methods }: RestService,
  { policies, maxBodyBytes }: RestRouteOptions,
): Endpoint {
  const { method, body, responseBody } = binding;
  const rpc = `${method.parent.typeName}/${method.name}`;
  const policy = policies.get(method);
  if (!policy) throw new PolicyError(`${rpc} is served but has no policy`);
  const invoke = methods[method.localName];
  if (!invoke) throw new Error(`${rpc} is served but has no implementation`);
  return {
    rpc,
    binding,
    method,
    policy,
    maxBodyBytes: maxBodyBytesOf(method.input, maxBodyBytes),
    readBody: readers.of(method.input),
    readBodyField: body === undefined || body === "*" ? undefined : readers.field(body),
    invoke: invoke as Endpoint["invoke"],
    write: responseBody ? fieldWriterOf(responseBody) : writerOf(method.output),
  };
}

/** The gate runs before the body selects one of two methods, so both must have the same policy. */
function toRoute(shared: SharedRoute): RestRoute {
  const first = firstOf(shared);
  const { selected } = shared;
  if (selected && JSON.stringify(first.policy) !== JSON.stringify(selected.endpoint.policy)) {
    throw new PolicyError(`${first.rpc} shares its route with a method of another policy`);
  }
  return { first, selected };
}

function firstOf({ usual, selected }: SharedRoute): Endpoint {
  return usual ?? (selected?.endpoint as Endpoint);
}

function nameOf({ method }: Endpoint): string {
  return `${method.parent.typeName}.${method.name}`;
}

function duplicate(one: Endpoint, other: Endpoint): DuplicateRouteError {
  return new DuplicateRouteError(`${nameOf(one)} and ${nameOf(other)} have the same route`);
}
