import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  type Message,
} from "@bufbuild/protobuf";
import { type BodySource, freeBytes, hasBody, readJsonBytes } from "../../codec/body.ts";
import { decode, readJsonMessage } from "../../codec/decode.ts";
import { JsonScanner } from "../../codec/json/json-scanner.ts";
import { scalarParser } from "../../codec/json/scalar.ts";
import { holdsBareValue, parseWellKnown } from "../../codec/json/well-known.ts";
import { invalid, RequestProblem } from "../../codec/problem.ts";
import type { Steps } from "../../codec/steps.ts";
import { readField } from "../../rules/request-digest.ts";
import type { RequestLimits } from "../http/limits.ts";
import { findFieldPath, type HttpBinding, isParameter, type Variable } from "./http-rule.ts";
import type { Endpoint, RestRoute } from "./rest-routes.ts";
import type { SurfaceForm } from "./surface-form.ts";

/** The endpoint that serves a request, and the message for it. */
type RestRequest = { readonly endpoint: Endpoint; readonly message: Message };

/** Reads the body, then the query, then the path: values in the address win. */
export function readRestRequest(
  route: RestRoute,
  segments: readonly string[],
  query: string,
  source: BodySource,
  limits: RequestLimits,
): RestRequest | Promise<RestRequest> {
  const { first } = route;
  if (first.binding.body !== undefined) return readWithBody(route, segments, query, source, limits);
  const read = (isBody: boolean) => {
    if (isBody) throw invalid("", "This path does not take a request body.");
    return bindAddress(first, create(first.method.input), segments, query);
  };
  const isBody = hasBody(source);
  return typeof isBody === "boolean" ? read(isBody) : isBody.then(read);
}

async function readWithBody(
  route: RestRoute,
  segments: readonly string[],
  query: string,
  source: BodySource,
  { maxBytes, share }: RequestLimits,
): Promise<RestRequest> {
  let bytes: Buffer | undefined;
  try {
    const read = readJsonBytes(source, { maxBytes, share, bodyMs: share.bodyMs });
    bytes = read instanceof Promise ? await read : read;
    const decoded = decode(bytes, share, readBody(route.first, bytes));
    const message = decoded instanceof Promise ? await decoded : decoded;
    const { endpoint, message: input } = selectEndpoint(route, message);
    return bindAddress(endpoint, input, segments, query);
  } finally {
    // Decoded JSON does not refer to the body.
    if (bytes) freeBytes(bytes);
  }
}

function bindAddress(
  endpoint: Endpoint,
  message: Message,
  segments: readonly string[],
  query: string,
): RestRequest {
  if (query !== "") bindQuery(endpoint, query, message);
  if (endpoint.binding.template.variables.length > 0) bindPath(endpoint.binding, segments, message);
  return { endpoint, message };
}

/** Both methods of an address have the same fields. */
function selectEndpoint({ first, selected }: RestRoute, message: Message): RestRequest {
  if (!selected || readField(selected.by, message) !== true) return { endpoint: first, message };
  const { endpoint } = selected;
  return { endpoint, message: create(endpoint.method.input, message) };
}

function* readBody({ method, readBody: read, readBodyField }: Endpoint, bytes: Buffer): Steps<Message> {
  // An empty body is an empty object.
  if (bytes.length === 0) return create(method.input);
  if (!readBodyField) return yield* readJsonMessage(read, bytes);
  const message = create(method.input);
  const scanner = new JsonScanner(bytes);
  yield* readBodyField(scanner, message);
  scanner.end();
  return message;
}

type Fields = Record<string, unknown>;

/** Sets the fields that the path names. Path variables override all other values. */
function bindPath(binding: HttpBinding, segments: readonly string[], message: Message): void {
  for (const variable of binding.template.variables) {
    const text = decodeVariable(variable, segments);
    const fields = findFieldPath(binding.method.input, variable.fieldPath);
    setField(fields, variable.fieldPath, text, message, new Set());
  }
}

type QueryRules = {
  readonly binding: HttpBinding;
  readonly form: Pick<SurfaceForm, "ignoredParameters">;
};

/** Sets the fields that the query names; a field of the path or the body is rejected. */
function bindQuery({ binding, form }: QueryRules, query: string, message: Message): void {
  const set = new Set<string>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decodeQuery(equals < 0 ? pair : pair.slice(0, equals));
    const text = decodeQuery(equals < 0 ? "" : pair.slice(equals + 1));
    if (form.ignoredParameters.includes(name)) continue;
    if (binding.body === "*")
      throw invalid(shorten(name), "is in the query, but this path reads its parameters from the body");
    setField(queryFields(binding, name), name, text, message, set);
  }
}

function queryFields(binding: HttpBinding, name: string): DescField[] {
  let fields: DescField[];
  try {
    fields = findFieldPath(binding.method.input, name);
  } catch {
    throw invalid(shorten(name), "is not a parameter of this path");
  }
  const path = fields.map((field) => field.name).join(".");
  if (binding.body === fields[0]) throw invalid(shorten(name), "must be in the body, not in the query");
  if (binding.template.variables.some((variable) => variable.fieldPath === path)) {
    throw invalid(shorten(name), "is set by the path and cannot be in the query");
  }
  return fields;
}

function setField(
  path: readonly DescField[],
  name: string,
  text: string,
  message: Message,
  set: Set<string>,
): void {
  const field = path.at(-1) as DescField;
  const key = path.map((one) => one.name).join(".");
  if (field.fieldKind !== "list" && set.has(key)) throw invalid(shorten(name), "is given more than once");
  set.add(key);
  let inside = message as unknown as Fields;
  for (const step of path.slice(0, -1)) inside = messageAt(step, inside, name);
  const value = parse(field, text, name);
  if (field.fieldKind === "list") (inside[field.localName] as unknown[]).push(value);
  else if (field.oneof) setMember(field, field.oneof, inside, value, name);
  else inside[field.localName] = value;
}

function setMember(field: DescField, oneof: DescOneof, inside: Fields, value: unknown, name: string): void {
  checkMember(field, oneof, inside, name);
  inside[oneof.localName] = { case: field.localName, value };
}

/** The field of a oneof that is set; throws if it is another one. */
function checkMember(field: DescField, oneof: DescOneof, inside: Fields, name: string): string | undefined {
  const { case: set } = inside[oneof.localName] as { case: string | undefined };
  if (set !== undefined && set !== field.localName)
    throw invalid(shorten(name), "must not be set together with another parameter");
  return set;
}

/** The message in an intermediate field of a path, created if it is absent. */
function messageAt(field: DescField, inside: Fields, name: string): Fields {
  const desc = field.message as DescMessage;
  if (field.oneof) {
    const set = checkMember(field, field.oneof, inside, name);
    if (set === undefined) inside[field.oneof.localName] = { case: field.localName, value: createOf(desc) };
    return (inside[field.oneof.localName] as { value: Fields }).value;
  }
  inside[field.localName] ??= createOf(desc);
  return inside[field.localName] as Fields;
}

function createOf(desc: DescMessage): Fields {
  return fromJson(desc, {}) as unknown as Fields;
}

function parse(field: DescField, text: string, name: string): unknown {
  if (!isParameter(field)) throw invalid(shorten(name), "cannot be set in a path or query");
  try {
    const scalar = scalarParser(holdsBareValue(field) ? (field.message?.fields[0] as DescField) : field);
    return scalar ? scalar(text) : parseWellKnown(field.message as DescMessage, text);
  } catch (error) {
    throw invalid(shorten(name), (error as Error).message);
  }
}

function decodeVariable(variable: Variable, segments: readonly string[]): string {
  const own = segments.slice(variable.start, variable.openEnded ? undefined : variable.end);
  return own.map(variable.multiple ? decodeKeepingSlashes : decodeText).join("/");
}

/** A value of several segments keeps "%2F", which would otherwise look like a separator. */
function decodeKeepingSlashes(text: string): string {
  return text
    .split(/(%2[Ff])/)
    .map((part, i) => (i % 2 === 1 ? part : decodeText(part)))
    .join("");
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // An address that is not valid text matches nothing.
    throw new RequestProblem("not_found", "The path is not valid percent-encoded UTF-8.");
  }
}

function decodeQuery(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalid("", "The query is not valid percent-encoded UTF-8.");
  }
}

function shorten(name: string): string {
  return name.length <= 200 ? name : `${name.slice(0, 200)}…`;
}
