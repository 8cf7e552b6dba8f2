import { create, type Message } from "@bufbuild/protobuf";
import { type BodySource, hasBody, readJsonBytes } from "../../codec/body.ts";
import { decode, readJsonMessage } from "../../codec/decode.ts";
import { freeBytes } from "../../codec/gathered-bytes.ts";
import { JsonScanner } from "../../codec/json/json-scanner.ts";
import { invalid } from "../../codec/problem.ts";
import type { Steps } from "../../codec/steps.ts";
import { readField } from "../../rules/read-field.ts";
import type { RequestLimits } from "../request-limits.ts";
import { bindPath, bindQuery } from "./parameters.ts";
import type { Endpoint, RestRoute } from "./rest-routes.ts";

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
