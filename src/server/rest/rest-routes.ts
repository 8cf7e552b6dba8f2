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
import { PolicyError, surfaceOf } from "../../rules/policy.ts";
import { readField } from "../../rules/untyped-values.ts";
import { type PrepareOptions, prepareMethod, type ServedMethod } from "../call.ts";
import { type HttpBinding, HttpRuleError, httpBindings } from "./http-rule.ts";
import { type OtherForm, otherFormOf } from "./other-forms.ts";
import { basePathsOf, isAtOrBelow, type RestSurface, restSurfaceOf, surfacesBelow, surfacesByPath } from "./surfaces.ts";
import { type UnsupportedApi, unsupportedApiAt } from "./unsupported-apis.ts";

/** A method at an address, with everything that can be prepared before the first call. */
export type Endpoint = ServedMethod & {
  readonly binding: HttpBinding;
  readonly surface: RestSurface;
  readonly readBody: Reader;
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
  readonly table: RouteTable;
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
      const key = `${binding.verb} ${binding.path.replaceAll(VARIABLE, "{}")}`;
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
  const table = new RouteTable();
  for (const route of shared.values()) table.insert(toRoute(route));
  return {
    table,
    surfaceOfPath: surfacesByPath(descriptors, surfaceBelow),
    basePaths: basePathsOf(descriptors),
  };
}

/** The route of a request. Without one, `allowed` lists the verbs of the address. */
export type RouteMatch = {
  readonly route: RestRoute | undefined;
  readonly allowed: readonly string[];
  readonly values: PathValues;
  readonly surface: RestSurface;
  /** Without a route: the API that has this address elsewhere. */
  readonly elsewhere: UnsupportedApi | undefined;
  /** Without a route: what to add to the refusal. */
  readonly correction: string;
};

export function findRestRoute(routes: RestRoutes, verb: string, path: string, headers: IncomingHttpHeaders): RouteMatch {
  const { table, surfaceOfPath, basePaths } = routes;
  const verbs = new Set<string>();
  for (const { byVerb, values } of table.placesAt(path)) {
    const usual = byVerb.get(verb);
    for (const other of byVerb.keys()) verbs.add(other);
    if (!usual) continue;
    const picked = usual.withHeader && headers[usual.withHeader.name] !== undefined ? usual.withHeader.route : usual;
    const { surface } = picked.first;
    return { route: picked, allowed: [], values, surface, elsewhere: undefined, correction: "" };
  }
  const allowed = verbs.size === 0 ? [] : [...verbs, "OPTIONS"];
  const below = basePaths.find((above) => path.startsWith(`${above}/`)) ?? "";
  return {
    route: undefined,
    allowed,
    values: NO_VALUES,
    surface: surfaceOfPath(path, headers),
    elsewhere: unsupportedApiAt(path.slice(below.length)),
    correction: allowed.length > 0 ? "" : correctionOf(routes, path),
  };
}

/** The path is caller input: it is repeated only if it is plain and contains no key. */
function isPlainPath(path: string): boolean {
  return /^[\w./:~-]{1,200}$/.test(path) && !path.includes(KEY_PREFIX);
}

export function describeNoRoute(path: string, correction: string): string {
  return isPlainPath(path) ? `No route matches the path ${path}.${correction}` : "No route matches this path.";
}

/** Other vendors have their API there. */
const OTHER_START = "/api/v1";

/** What to add to the refusal of a path without a route that has "/v1" too often, not at all, or below "/api". */
export function correctionOf({ table, basePaths }: RestRoutes, path: string): string {
  if (!isPlainPath(path)) return "";
  if (isAtOrBelow(path, OTHER_START)) return didYouMean(path.slice("/api".length));
  const below = basePaths.find((above) => path.startsWith(`${above}/`)) ?? "";
  const candidates = [path.replace("/v1/v1/", "/v1/"), `${below}/v1${path.slice(below.length)}`, path.slice(below.length)];
  const correct = candidates.find((candidate) => table.placesAt(candidate).next().value);
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
  const { method, responseBody } = binding;
  const invoke = methods[method.localName];
  if (!invoke) throw new Error(`${nameOf(method)} is served but has no implementation`);
  if (surface.namesEvents && method.methodKind !== "unary") checkHasType(method);
  return {
    ...prepareMethod(method, invoke, options),
    check: checks?.[method.localName],
    binding,
    surface,
    readBody: readers.of(method.input),
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
  const { usual, selected, withHeader } = shared;
  const first = usual ?? selected?.endpoint ?? (withHeader?.route.first as Endpoint);
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

function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}

function duplicate(one: Endpoint, other: Endpoint): DuplicateRouteError {
  return new DuplicateRouteError(`${nameOf(one.binding.method)} and ${nameOf(other.binding.method)} have the same route`);
}

export class DuplicateRouteError extends Error {}

/** The texts of the variables of a path, by name, percent-encoded. */
export type PathValues = Readonly<Record<string, string>>;

type Place = { readonly byVerb: Map<string, RestRoute>; readonly values: PathValues };
type Pattern = { readonly path: string; readonly expression: RegExp; readonly byVerb: Map<string, RestRoute> };

const NO_VALUES: PathValues = {};
const VARIABLE = /\{(\w+)\}/g;

/** Finds the routes of a path. A path without variables wins over others, and one that ends in ":verb" over one that does not. */
class RouteTable {
  readonly #literals = new Map<string, Place>();
  readonly #patterns: Pattern[] = [];

  insert(route: RestRoute): void {
    const { path, verb, variables, method } = route.first.binding;
    const byVerb = variables.length === 0 ? this.#literalAt(path).byVerb : this.#patternOf(path).byVerb;
    byVerb.set(verb, route);
    // The answer to a HEAD is complete when GET's would be, so a stream has none.
    if (verb === "GET" && method.methodKind === "unary") byVerb.set("HEAD", route);
  }

  /** All places that match the path, the most specific first. */
  *placesAt(path: string): Generator<Place, undefined> {
    const plain = path.includes("%") ? path.replace(/%[0-9a-f]{2}/gi, decodeUnreserved) : path;
    const literal = this.#literals.get(plain);
    if (literal) yield literal;
    for (const { path: template, expression, byVerb } of this.#patterns) {
      const groups = expression.exec(plain)?.groups;
      if (!groups) continue;
      yield { byVerb, values: groups };
      // A path that has the verb of a template is not also matched without a verb.
      if (template.includes(":")) return;
    }
  }

  #literalAt(path: string): Place {
    const place = this.#literals.get(path) ?? { byVerb: new Map(), values: NO_VALUES };
    this.#literals.set(path, place);
    return place;
  }

  #patternOf(path: string): Pattern {
    const source = path.replaceAll(".", "\\.");
    const expression = new RegExp(`^${source.replaceAll(VARIABLE, "(?<$1>[^/]+)")}$`);
    const known = this.#patterns.find((other) => other.expression.source === expression.source);
    if (known) return known;
    const pattern = { path, expression, byVerb: new Map() };
    if (path.includes(":")) this.#patterns.unshift(pattern);
    else this.#patterns.push(pattern);
    return pattern;
  }
}

/** An encoded letter, digit or mark means the same as the character itself (RFC 3986, 6.2.2.2). */
function decodeUnreserved(encoded: string): string {
  const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
  return /[\w.~-]/.test(character) ? character : encoded;
}
