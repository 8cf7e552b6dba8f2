import { create, type DescField, type Message } from "@bufbuild/protobuf";
import { type BodySource, hasBody, readJsonBytes } from "../../codec/body.ts";
import { decode, readJsonMessage } from "../../codec/decode.ts";
import { JsonScanner } from "../../codec/json/json-scanner.ts";
import { invalid } from "../../codec/problem.ts";
import type { Steps } from "../../codec/steps.ts";
import type { RequestLimits } from "../request-limits.ts";
import { bindPath, bindQuery } from "./parameters.ts";
import type { Endpoint, RestRoute } from "./rest-routes.ts";

/** Bytes searched at once. */
const SEARCH_BYTES = 4_194_304;

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
  { maxBytes, budget, sender }: RequestLimits,
): Promise<RestRequest> {
  const hold = budget.hold(sender);
  try {
    const bytes = await readJsonBytes(source, { maxBytes, hold, bodyMs: budget.bodyMs });
    const { endpoint, message } = await decode(bytes, budget, readBody(route, bytes));
    return bindAddress(endpoint, message, segments, query);
  } finally {
    hold.release();
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

function* readBody({ first, selected }: RestRoute, bytes: Buffer): Steps<RestRequest> {
  const endpoint = selected && (yield* isFieldTrue(bytes, selected.by)) ? selected.endpoint : first;
  const { input } = endpoint.method;
  // An empty body is an empty object.
  if (bytes.length === 0) return { endpoint, message: create(input) };
  const { readBodyField } = endpoint;
  if (!readBodyField) return { endpoint, message: yield* readJsonMessage(endpoint.readBody, bytes) };
  const message = create(input);
  const scanner = new JsonScanner(bytes);
  yield* readBodyField(scanner, message);
  scanner.end();
  return { endpoint, message };
}

/** Whether the field is true in the body; checks only the names of the outermost object. */
function* isFieldTrue(bytes: Buffer, field: DescField): Steps<boolean> {
  if (!(yield* mayContainTrue(bytes, field))) return false;
  const scanner = new JsonScanner(bytes);
  if (scanner.peek() !== "object") return false;
  let isTrue = false;
  for (const name of scanner.members()) {
    if ((name === field.name || name === field.jsonName) && scanner.peek() === "true") isTrue = true;
    yield* scanner.skip();
  }
  return isTrue;
}

/** A letter of the name can also be an escape with its number. */
function* mayContainTrue(bytes: Buffer, { name, jsonName }: DescField): Steps<boolean> {
  if (!(yield* containsWord(bytes, "true"))) return false;
  for (const word of [`"${name}"`, `"${jsonName}"`, "\\u"]) if (yield* containsWord(bytes, word)) return true;
  return false;
}

/** Whether the body contains the word, which is ASCII. */
function* containsWord(bytes: Buffer, word: string): Steps<boolean> {
  for (let start = 0; start < bytes.length; start += SEARCH_BYTES) {
    if (start > 0) yield;
    if (bytes.subarray(start, start + SEARCH_BYTES + word.length - 1).includes(word, 0, "latin1"))
      return true;
  }
  return false;
}
