import { create, type DescField, type Message } from "@bufbuild/protobuf";
import { type BodySource, hasBody, readJsonBytes } from "../../codec/body.ts";
import type { BodyBudget } from "../../codec/body-budget.ts";
import { JsonScanner } from "../../codec/json/json-scanner.ts";
import type { Reader } from "../../codec/json/reader.ts";
import { invalid } from "../../codec/problem.ts";
import { finish, finishInTurns, type Steps } from "../../codec/steps.ts";
import { bindPath, bindQuery } from "./parameters.ts";
import type { Endpoint, RestRoute } from "./routes.ts";

/** Smaller bodies are parsed at once: the event loop is blocked only briefly. */
export const LARGE_BYTES = 262_144;

/** Bytes searched at once. */
const SEARCH_BYTES = 4_194_304;

/** The endpoint that serves a request, and the message for it. */
type RestRequest = { readonly endpoint: Endpoint; readonly message: Message };

type RequestLimits = {
  readonly maxBytes: number;
  readonly budget: BodyBudget;
  /** The account whose share of the budget the body uses; no account can use all of it. */
  readonly sender: string | undefined;
};

/** Reads the body, then the query, then the path: values in the address win. */
export async function readRequest(
  route: RestRoute,
  segments: readonly string[],
  query: string,
  source: BodySource,
  { maxBytes, budget, sender }: RequestLimits,
): Promise<RestRequest> {
  const first = route.usual ?? route.selected?.endpoint;
  if (!first) throw new Error("a route without a method");
  const { body } = first.binding;
  if (body === undefined) {
    if (await hasBody(source)) throw invalid("", "this address takes no body");
    return bind(first, create(first.method.input), segments, query);
  }
  const hold = budget.hold(sender);
  try {
    const bytes = await readJsonBytes(source, { maxBytes, hold, bodyMs: budget.bodyMs });
    const { endpoint, message } = await parse(bytes, budget, readBody(route, first, bytes));
    return bind(endpoint, message, segments, query);
  } finally {
    hold.release();
  }
}

/** Parses small bodies at once; large ones one at a time, in parts, so that other calls run in between. */
export async function parse<Result>(
  bytes: Buffer,
  budget: BodyBudget,
  steps: Steps<Result>,
): Promise<Result> {
  return bytes.length < LARGE_BYTES ? finish(steps) : budget.inTurn(() => finishInTurns(steps));
}

/** Reads the whole body as one message. */
export function* readMessage(read: Reader, bytes: Buffer): Steps<Message> {
  const scanner = new JsonScanner(bytes);
  const message = yield* read(scanner, "");
  scanner.end();
  return message;
}

function bind(endpoint: Endpoint, message: Message, segments: readonly string[], query: string): RestRequest {
  if (query !== "") bindQuery(endpoint.binding, query, message);
  if (endpoint.binding.template.variables.length > 0) bindPath(endpoint.binding, segments, message);
  return { endpoint, message };
}

function* readBody(route: RestRoute, first: Endpoint, bytes: Buffer): Steps<RestRequest> {
  const { selected } = route;
  const endpoint = selected && (yield* isTrue(bytes, selected.by)) ? selected.endpoint : first;
  const { input } = endpoint.method;
  // An empty body is an empty object.
  if (bytes.length === 0) return { endpoint, message: create(input) };
  const { readBodyField } = endpoint;
  if (!readBodyField) return { endpoint, message: yield* readMessage(endpoint.readBody, bytes) };
  const whole = create(input);
  const scanner = new JsonScanner(bytes);
  yield* readBodyField(scanner, whole);
  scanner.end();
  return { endpoint, message: whole };
}

/** Whether the field is true in the body; checks only the names of the outermost object. */
function* isTrue(bytes: Buffer, field: DescField): Steps<boolean> {
  if (!(yield* says(bytes, "true"))) return false;
  const scanner = new JsonScanner(bytes);
  if (scanner.peek() !== "object") return false;
  let found = false;
  for (const name of scanner.members()) {
    if ((name === field.name || name === field.jsonName) && scanner.peek() === "true") found = true;
    yield* scanner.skip();
  }
  return found;
}

/** Whether the body contains the word, which is ASCII. */
function* says(bytes: Buffer, word: string): Steps<boolean> {
  for (let start = 0; start < bytes.length; start += SEARCH_BYTES) {
    if (start > 0) yield;
    if (bytes.subarray(start, start + SEARCH_BYTES + word.length - 1).includes(word, 0, "latin1"))
      return true;
  }
  return false;
}
