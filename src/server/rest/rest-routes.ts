import type { IncomingHttpHeaders } from "node:http";
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import type { BoundMethod, RequestCheck } from "../../api/define-service.ts";
import { type Reader, Readers, type UnknownFields } from "../../codec/json/reader.ts";
import { fieldWriterOf, type Writer, writerOf } from "../../codec/json/writer.ts";
import { KEY_PREFIX } from "../../domain/credentials.ts";
import { readField } from "../../rules/plain-values.ts";
import { PolicyError, surfaceOf } from "../../rules/policy.ts";
import { type PrepareOptions, prepareMethod, type ServedMethod } from "../call.ts";
import { type HttpBinding, HttpRuleError, httpBindings, type Literal, type Segment, type Template } from "./http-rule.ts";
import { type OtherForm, otherFormOf } from "./other-forms.ts";
import { basePathsOf, isAtOrBelow, type RestSurface, restSurfaceOf, surfacesBelow, surfacesByPath } from "./surfaces.ts";
import { type UnsupportedApi, unsupportedApiAt } from "./unsupported-apis.ts";

/** A method at an address, with everything that can be prepared before the first call. */
export type Endpoint = ServedMethod & {
  readonly binding: HttpBinding;
  readonly surface: RestSurface;
  readonly readBody: Reader;
  readonly readBodyField: ReturnType<Readers["field"]> | undefined;
  readonly write: Writer;
  readonly otherForm: OtherForm | undefined;
  /** The id of a server-sent event; undefined if the events of the method have none. */
  readonly idOf: ((message: Message) => string) | undefined;
};

export type RestRoute = {
  /** The method that serves the address, unless the body selects the other one. */
  readonly first: Endpoint;
  /** The method that serves the address if its bool field is set in the body. */
  readonly selected: { readonly by: DescField; readonly endpoint: Endpoint } | undefined;
  /** The method that serves the address if the call has the header. */
  readonly withHeader: { readonly name: string; readonly route: RestRoute } | undefined;
};

/** A service with its methods, by their local names. */
export type RestService = {
  readonly service: DescService;
  readonly unknownFields: UnknownFields;
  readonly checks?: Readonly<Record<string, RequestCheck>>;
  readonly methods: Readonly<Record<string, BoundMethod>>;
};

type SharedRoute = {
  usual: Endpoint | undefined;
  selected: RestRoute["selected"];
  withHeader: RestRoute["withHeader"];
};

export type RestRoutes = {
  readonly trie: RouteTrie<RestRoute>;
  /** The surface of errors at an address without a route. */
  readonly surfaceOfPath: ReturnType<typeof surfacesByPath>;
  readonly basePaths: readonly string[];
};

/** The routes of all services; throws, with both names, if two methods have the same route. */
export function restRoutes(services: readonly RestService[], options: PrepareOptions): RestRoutes {
  const descriptors = services.map(({ service }) => service);
  const surfaceBelow = surfacesBelow(descriptors);
  const shared = new Map<string, SharedRoute>();
  for (const service of services) {
    const readers = new Readers(service.unknownFields);
    for (const binding of service.service.methods.flatMap(httpBindings)) {
      const key = `${binding.verb} ${binding.path}`;
      const route = shared.get(key) ?? {
        usual: undefined,
        selected: undefined,
        withHeader: undefined,
      };
      const surface = surfaceBelow(binding.path) ?? restSurfaceOf(surfaceOf(service.service));
      const endpoint = toEndpoint(binding, surface, readers, service, options);
      if (binding.selectedBy) {
        if (route.selected) throw duplicate(route.selected.endpoint, endpoint);
        route.selected = { by: binding.selectedBy, endpoint };
      } else if (binding.selectedByHeader !== "" && surfaceBelow(binding.path) === undefined) {
        if (route.withHeader) throw duplicate(route.withHeader.route.first, endpoint);
        const only = { first: endpoint, selected: undefined, withHeader: undefined };
        route.withHeader = { name: binding.selectedByHeader, route: only };
      } else {
        if (route.usual) throw duplicate(route.usual, endpoint);
        route.usual = endpoint;
      }
      shared.set(key, route);
    }
  }
  const trie = new RouteTrie<RestRoute>();
  for (const route of shared.values()) {
    const { template, verb, method } = firstOf(route).binding;
    // The answer to a HEAD is complete when GET's would be, so a stream has none.
    const verbs = verb === "GET" && method.methodKind === "unary" ? ["GET", "HEAD"] : [verb];
    for (const one of verbs) trie.insert(template, one, toRoute(route), ({ first }) => nameOf(first.binding.method));
  }
  return {
    trie,
    surfaceOfPath: surfacesByPath(descriptors, surfaceBelow),
    basePaths: basePathsOf(descriptors),
  };
}

/** The route of a request. Without one, `allowed` lists the verbs of the address. */
export type RouteMatch = {
  readonly route: RestRoute | undefined;
  readonly allowed: readonly string[];
  readonly segments: readonly string[];
  readonly surface: RestSurface;
  /** Without a route: the API that has this address elsewhere. */
  readonly elsewhere: UnsupportedApi | undefined;
  /** Without a route: what to add to the refusal. */
  readonly correction: string;
};

export function findRestRoute(routes: RestRoutes, verb: string, path: string, headers: IncomingHttpHeaders): RouteMatch {
  const { trie, surfaceOfPath, basePaths } = routes;
  const match = trie.find(path, (routes) => routes.get(verb) ?? routes.get("*"));
  if (match) {
    const { picked: usual, segments } = match;
    const picked = usual.withHeader && headers[usual.withHeader.name] !== undefined ? usual.withHeader.route : usual;
    return {
      route: picked,
      allowed: [],
      segments,
      surface: picked.first.surface,
      elsewhere: undefined,
      correction: "",
    };
  }
  const verbs = new Set<string>();
  trie.find(path, (routes) => {
    for (const other of routes.keys()) verbs.add(other);
    return undefined;
  });
  const allowed = verbs.size === 0 ? [] : [...verbs, "OPTIONS"];
  const below = basePaths.find((above) => path.startsWith(`${above}/`)) ?? "";
  return {
    route: undefined,
    allowed,
    segments: [],
    surface: surfaceOfPath(path, headers),
    elsewhere: unsupportedApiAt(path.slice(below.length)),
    correction: allowed.length > 0 ? "" : correctionOf(routes, path),
  };
}

/** The path is caller input: it is repeated only if it is plain and contains no key. */
function isPlainPath(path: string): boolean {
  return /^[\w./:~-]{1,200}$/.test(path) && !path.includes(KEY_PREFIX);
}

/** The message of the 404 at a path without a route. */
export function describeNoRoute(path: string, correction: string): string {
  return isPlainPath(path) ? `No route matches the path ${path}.${correction}` : "No route matches this path.";
}

/** Other vendors have their API there. */
const OTHER_START = "/api/v1";

/** What to add to the refusal of a path without a route that has "/v1" too often, not at all, or below "/api". */
export function correctionOf({ trie, basePaths }: RestRoutes, path: string): string {
  if (!isPlainPath(path)) return "";
  if (isAtOrBelow(path, OTHER_START)) return didYouMean(path.slice("/api".length));
  const below = basePaths.find((above) => path.startsWith(`${above}/`)) ?? "";
  const candidates = [path.replace("/v1/v1/", "/v1/"), `${below}/v1${path.slice(below.length)}`, path.slice(below.length)];
  const correct = candidates.find((candidate) => trie.find(candidate, ({ size }) => size > 0 || undefined));
  return correct === undefined ? "" : didYouMean(correct);
}

function didYouMean(correct: string): string {
  return ` Did you mean ${correct}? The base URL of OpenAI's clients ends in /v1, that of Anthropic's clients does not.`;
}

/** The endpoint that serves the message of a body. Both methods of an address have the same fields. */
export function selectEndpoint({ first, selected }: RestRoute, message: Message): Endpoint {
  if (!selected || readField(selected.by, message) !== true) return first;
  const { endpoint } = selected;
  (message as { $typeName: string }).$typeName = endpoint.input.typeName;
  return endpoint;
}

function toEndpoint(
  binding: HttpBinding,
  surface: RestSurface,
  readers: Readers,
  { methods, checks }: RestService,
  options: PrepareOptions,
): Endpoint {
  const { method, body, responseBody } = binding;
  const invoke = methods[method.localName];
  if (!invoke) throw new Error(`${nameOf(method)} is served but has no implementation`);
  if (surface.namesEvents && method.methodKind !== "unary") checkHasType(method);
  return {
    ...prepareMethod(method, invoke, options),
    check: checks?.[method.localName],
    binding,
    surface,
    readBody: readers.of(method.input),
    readBodyField: body === undefined || body === "*" ? undefined : readers.field(body),
    write: responseBody ? fieldWriterOf(responseBody) : writerOf(method.output),
    otherForm: otherFormOf(method),
    idOf: binding.resumedBy && responseBody ? idReaderOf(method, responseBody) : undefined,
  };
}

/** The id of an event is that of the message in the body of the response. */
function idReaderOf({ parent, name }: DescMethod, responseBody: DescField): (message: Message) => string {
  const id = responseBody.message?.fields.find((field) => field.name === "id");
  if (id?.fieldKind !== "scalar" || id.scalar !== ScalarType.STRING)
    throw new HttpRuleError(`${parent.typeName}.${name}: its events need the field "string id"`);
  return (message) => readField(id, readField(responseBody, message) as Message) as string;
}

/** The name of an event is the `type` of its message. */
function checkHasType({ parent, name, output }: DescMethod): void {
  const type = output.fields.find((field) => field.name === "type");
  if (type?.fieldKind !== "scalar" || type.scalar !== ScalarType.STRING || type.oneof)
    throw new HttpRuleError(`${parent.typeName}.${name}: its events need the field "string type"`);
}

/**
 * The gate runs before the body selects one of two methods, and the body is read once, so both must have the same policy,
 * form and fields.
 */
function toRoute(shared: SharedRoute): RestRoute {
  const first = firstOf(shared);
  const { selected, withHeader } = shared;
  if (selected && JSON.stringify(first.policy) !== JSON.stringify(selected.endpoint.policy)) {
    throw new PolicyError(`${first.rpc} shares its route with a method of another policy`);
  }
  if (selected && first.surface !== selected.endpoint.surface)
    throw new HttpRuleError(`${first.rpc} shares its route with a method of another surface`);
  if (selected && !hasSameFields(first.input, selected.endpoint.input))
    throw new HttpRuleError(`${first.rpc} shares its route with a method that has other fields`);
  return { first, selected, withHeader };
}

function hasSameFields(one: DescMessage, other: DescMessage): boolean {
  const textOf = ({ fields }: DescMessage) =>
    JSON.stringify(
      fields.map(({ name, fieldKind, scalar, message, enum: values, oneof }) => [
        name,
        fieldKind,
        scalar ?? message?.typeName ?? values?.typeName,
        oneof?.name,
      ]),
    );
  return textOf(one) === textOf(other);
}

function firstOf({ usual, selected, withHeader }: SharedRoute): Endpoint {
  return usual ?? selected?.endpoint ?? (withHeader?.route.first as Endpoint);
}

function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}

function duplicate(one: Endpoint, other: Endpoint): DuplicateRouteError {
  return new DuplicateRouteError(`${nameOf(one.binding.method)} and ${nameOf(other.binding.method)} have the same route`);
}

/** The route picked for a path, and the path segments as matched. */
type TrieMatch<Picked> = {
  readonly picked: Picked;
  readonly segments: readonly string[];
};

/**
 * Picks one of the routes of a node, by HTTP verb; undefined continues with the next node that matches the
 * path.
 */
type Pick<Route, Picked> = (routes: ReadonlyMap<string, Route>) => Picked | undefined;

export class DuplicateRouteError extends Error {}

type LiteralPath<Route> = {
  readonly routes: ReadonlyMap<string, Route>;
  readonly segments: readonly string[];
};

type Node<Route> = {
  readonly literals: Map<string, Node<Route>>;
  single: Node<Route> | undefined;
  rest: Node<Route> | undefined;
  /** By template verb ("" for none), then by HTTP verb. */
  readonly routes: Map<string, Map<string, Route>>;
};

/** Finds the routes of a path: a literal wins over "*", and "*" over "**". */
export class RouteTrie<Route> {
  readonly #root: Node<Route> = createNode();
  /** The nodes of paths that consist of literals, by path. They win over all others, so the trie is not searched. */
  readonly #literalPaths = new Map<string, LiteralPath<Route>>();

  /** `describe` names both routes of a conflict. */
  insert(template: Template, httpVerb: string, route: Route, describe: (route: Route) => string): void {
    let node = this.#root;
    for (const segment of template.segments) {
      if (segment.kind === "literal") node = child(node.literals, segment.text);
      else if (segment.kind === "*") node = node.single ??= createNode();
      else node = node.rest ??= createNode();
    }
    const byVerb = node.routes.get(template.verb ?? "") ?? new Map<string, Route>();
    node.routes.set(template.verb ?? "", byVerb);
    const taken = byVerb.get(httpVerb);
    if (taken !== undefined) throw new DuplicateRouteError(`${describe(taken)} and ${describe(route)} have the same route`);
    byVerb.set(httpVerb, route);
    const segments = template.segments.flatMap((segment) => (isPlain(segment) ? [segment.text] : []));
    if (template.verb === undefined && segments.length === template.segments.length)
      this.#literalPaths.set(`/${segments.join("/")}`, { routes: byVerb, segments });
  }

  *routes(): Iterable<Route> {
    const nodes = [this.#root];
    for (let node = nodes.pop(); node; node = nodes.pop()) {
      for (const byVerb of node.routes.values()) yield* byVerb.values();
      nodes.push(...node.literals.values(), ...[node.single, node.rest].filter((one) => one !== undefined));
    }
  }

  /**
   * Passes the nodes that match the path to `pick`, the most specific first, until it returns a result. The
   * segments stay percent-encoded; literals are compared decoded.
   */
  find<Picked>(path: string, pick: Pick<Route, Picked>): TrieMatch<Picked> | undefined {
    const literal = this.#literalPaths.get(path);
    const atLiteral = literal && pick(literal.routes);
    if (literal && atLiteral !== undefined) return { picked: atLiteral, segments: literal.segments };
    const segments = path.slice(1).split("/");
    const last = segments.length - 1;
    const text = segments[last] as string;
    const colon = text.lastIndexOf(":");
    if (colon >= 0 && colon < text.length - 1) {
      let isVerb = false;
      const match = this.#match(segments.with(last, text.slice(0, colon)), text.slice(colon + 1), (routes) => {
        isVerb = true;
        return pick(routes);
      });
      // If a template with this verb matches the path, the path is not also matched without a verb.
      if (isVerb) return match;
    }
    return this.#match(segments, "", pick);
  }

  #match<Picked>(segments: readonly string[], verb: string, pick: Pick<Route, Picked>): TrieMatch<Picked> | undefined {
    // "/" has no segments.
    const matched = segments.length === 1 && segments[0] === "" ? [] : segments;
    const picked = walk(this.#root, matched, 0, verb, pick);
    return picked === undefined ? undefined : { picked, segments: matched };
  }
}

function walk<Route, Picked>(
  node: Node<Route>,
  segments: readonly string[],
  at: number,
  verb: string,
  pick: Pick<Route, Picked>,
): Picked | undefined {
  const pickAt = (place: Node<Route> | undefined) => {
    const routes = place?.routes.get(verb);
    return routes && pick(routes);
  };
  const segment = segments[at];
  // "**" also matches zero segments.
  if (segment === undefined) return pickAt(node) ?? pickAt(node.rest);
  const literal = node.literals.get(decodeLiteral(segment));
  const found = literal && walk(literal, segments, at + 1, verb, pick);
  if (found !== undefined) return found;
  // An empty segment is not a value: "/v1/keys/" is not "/v1/keys/{key_id}".
  if (segment === "") return undefined;
  return (node.single && walk(node.single, segments, at + 1, verb, pick)) ?? pickAt(node.rest);
}

/** A literal that a path can contain unchanged: a decoded "/" or ":" would look like a boundary. */
function isPlain(segment: Segment): segment is Literal {
  return segment.kind === "literal" && !/[/:]/.test(segment.text);
}

function decodeLiteral(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function createNode<Route>(): Node<Route> {
  return { literals: new Map(), single: undefined, rest: undefined, routes: new Map() };
}

function child<Route>(literals: Map<string, Node<Route>>, text: string): Node<Route> {
  const known = literals.get(text);
  if (known) return known;
  const created = createNode<Route>();
  literals.set(text, created);
  return created;
}
