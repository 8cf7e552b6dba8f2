import type { DescField, DescMethod, DescService } from "@bufbuild/protobuf";
import { type Reader, Readers, type UnknownFields } from "../../codec/json/reader.ts";
import { fieldWriterOf, type Writer, writerOf } from "../../codec/json/writer.ts";
import { type HttpBinding, httpBindings } from "./http-rule.ts";
import { DuplicateRouteError, RouteTrie } from "./trie.ts";

/** A method at an address, with everything that can be prepared before the first call. */
export type Endpoint = {
  readonly binding: HttpBinding;
  readonly method: DescMethod;
  readonly readBody: Reader;
  readonly readBodyField: ReturnType<Readers["field"]> | undefined;
  readonly write: Writer;
};

/** The method that serves an address, and the one that serves it if its bool field is set in the body. */
export type RestRoute = {
  readonly usual: Endpoint | undefined;
  readonly selected: { readonly by: DescField; readonly endpoint: Endpoint } | undefined;
};

export type RestService = { readonly service: DescService; readonly unknownFields: UnknownFields };

/** The routes of all services; throws, with both names, if two methods have the same route. */
export function restRoutes(services: readonly RestService[]): RouteTrie<RestRoute> {
  const shared = new Map<string, { usual?: Endpoint; selected?: { by: DescField; endpoint: Endpoint } }>();
  const templates = new Map<string, HttpBinding>();
  for (const { service, unknownFields } of services) {
    const readers = new Readers(unknownFields);
    for (const binding of service.methods.flatMap(httpBindings)) {
      const key = `${binding.verb} ${binding.path}`;
      const route = shared.get(key) ?? {};
      const endpoint = toEndpoint(binding, readers);
      if (binding.selectedBy) {
        if (route.selected) throw duplicate(route.selected.endpoint, endpoint);
        route.selected = { by: binding.selectedBy, endpoint };
      } else {
        if (route.usual) throw duplicate(route.usual, endpoint);
        route.usual = endpoint;
      }
      shared.set(key, route);
      templates.set(key, binding);
    }
  }
  const trie = new RouteTrie<RestRoute>();
  for (const [key, { usual, selected }] of shared) {
    const { template, verb } = templates.get(key) as HttpBinding;
    trie.add(template, verb, { usual, selected }, (route) =>
      nameOf(route.usual ?? (route.selected?.endpoint as Endpoint)),
    );
  }
  return trie;
}

function toEndpoint(binding: HttpBinding, readers: Readers): Endpoint {
  const { method, body, responseBody } = binding;
  return {
    binding,
    method,
    readBody: readers.of(method.input),
    readBodyField: body === undefined || body === "*" ? undefined : readers.field(body),
    write: responseBody ? fieldWriterOf(responseBody) : writerOf(method.output),
  };
}

function nameOf({ method }: Endpoint): string {
  return `${method.parent.typeName}.${method.name}`;
}

function duplicate(one: Endpoint, other: Endpoint): DuplicateRouteError {
  return new DuplicateRouteError(`${nameOf(one)} and ${nameOf(other)} have the same route`);
}
