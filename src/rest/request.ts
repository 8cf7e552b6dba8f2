import { create, type DescField, type Message } from "@bufbuild/protobuf";
import { type BodySource, hasBody, readJsonBytes, toUtf8 } from "./body.ts";
import type { BodyBudget } from "./body-budget.ts";
import { JsonScanner } from "./json-scanner.ts";
import { bindPath, bindQuery } from "./parameters.ts";
import { invalid } from "./problem.ts";
import type { Reader } from "./reader.ts";
import type { Endpoint, RestRoute } from "./routes.ts";
import { finish, finishInTurns, type Steps } from "./steps.ts";

/** What is parsed at once without anybody noticing. */
export const LARGE_BYTES = 262_144;

/** What a request asks for: the endpoint that serves it, and the message it gets. */
type RestRequest = { readonly endpoint: Endpoint; readonly message: Message };

type RequestLimits = {
  readonly maxBytes: number;
  readonly budget: BodyBudget;
  /** Who shares the budget; nobody may have all of it. */
  readonly sender: string | undefined;
};

/** Body, then query, then path: what the address says wins. */
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
    const { endpoint, message } = await parseJson(bytes, budget, (utf8) => readBody(route, first, utf8));
    return bind(endpoint, message, segments, query);
  } finally {
    hold.release();
  }
}

/** Small bodies at once; large ones one after the other, in parts between which others run. */
export async function parseJson<Result>(
  bytes: Buffer,
  budget: BodyBudget,
  read: (utf8: Buffer) => Steps<Result>,
): Promise<Result> {
  const steps = parseText(bytes, read);
  return bytes.length < LARGE_BYTES ? finish(steps) : budget.inTurn(() => finishInTurns(steps));
}

/** Not made for each call: a function that yields is kept, with all it knows, until the next large collection. */
function* parseText<Result>(bytes: Buffer, read: (utf8: Buffer) => Steps<Result>): Steps<Result> {
  return yield* read(yield* toUtf8(bytes));
}

/** The whole text as one message. */
export function* readMessage(read: Reader, utf8: Buffer): Steps<Message> {
  const scanner = new JsonScanner(utf8);
  const message = yield* read(scanner, "");
  scanner.end();
  return message;
}

function bind(endpoint: Endpoint, message: Message, segments: readonly string[], query: string): RestRequest {
  if (query !== "") bindQuery(endpoint.binding, query, message);
  if (endpoint.binding.template.variables.length > 0) bindPath(endpoint.binding, segments, message);
  return { endpoint, message };
}

function* readBody(route: RestRoute, first: Endpoint, utf8: Buffer): Steps<RestRequest> {
  const { selected } = route;
  const endpoint = selected && (yield* isTrue(utf8, selected.by)) ? selected.endpoint : first;
  const { input } = endpoint.method;
  // An empty body is an empty object.
  if (utf8.length === 0) return { endpoint, message: create(input) };
  const { readBodyField } = endpoint;
  if (!readBodyField) return { endpoint, message: yield* readMessage(endpoint.readBody, utf8) };
  const whole = create(input);
  const scanner = new JsonScanner(utf8);
  yield* readBodyField(scanner, whole);
  scanner.end();
  return { endpoint, message: whole };
}

/** Whether the body has true in the field; looks at the names of the outermost object only. */
function* isTrue(utf8: Buffer, field: DescField): Steps<boolean> {
  if (!utf8.includes("true")) return false;
  const scanner = new JsonScanner(utf8);
  if (scanner.peek() !== "object") return false;
  let found = false;
  for (const name of scanner.members()) {
    if ((name === field.name || name === field.jsonName) && scanner.peek() === "true") found = true;
    yield* scanner.skip();
  }
  return found;
}
