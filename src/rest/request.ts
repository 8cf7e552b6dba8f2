import { create, type DescField, type Message } from "@bufbuild/protobuf";
import { type BodySource, hasBody, readJsonText } from "./body.ts";
import { JsonScanner } from "./json-scanner.ts";
import { bindPath, bindQuery } from "./parameters.ts";
import { invalid } from "./problem.ts";
import type { Endpoint, RestRoute } from "./routes.ts";

const LARGE_TEXT = 262_144;

/** What a request asks for: the endpoint that serves it, and the message it gets. */
export type RestRequest = { readonly endpoint: Endpoint; readonly message: Message };

/** Body, then query, then path: what the address says wins. */
export async function readRequest(
  route: RestRoute,
  segments: readonly string[],
  query: string,
  source: BodySource,
  maxBytes: number,
): Promise<RestRequest> {
  const first = route.usual ?? route.selected?.endpoint;
  if (!first) throw new Error("a route without a method");
  const { body } = first.binding;
  if (body === undefined) {
    if (await hasBody(source)) throw invalid("", "this address takes no body");
    return finish(first, create(first.method.input), segments, query);
  }
  const text = await readJsonText(source, maxBytes);
  const others = text.length < LARGE_TEXT ? undefined : letOthersRun;
  await others?.();
  const endpoint = route.selected && isTrue(text, route.selected.by) ? route.selected.endpoint : first;
  await others?.();
  const message = readBody(endpoint, text);
  await others?.();
  return finish(endpoint, message, segments, query);
}

/** Between the steps of a large body: each of them takes milliseconds. */
function letOthersRun(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function finish(
  endpoint: Endpoint,
  message: Message,
  segments: readonly string[],
  query: string,
): RestRequest {
  if (query !== "") bindQuery(endpoint.binding, query, message);
  if (endpoint.binding.template.variables.length > 0) bindPath(endpoint.binding, segments, message);
  return { endpoint, message };
}

/** An empty body is an empty object. */
function readBody(endpoint: Endpoint, text: string): Message {
  if (text === "") return create(endpoint.method.input);
  const scanner = new JsonScanner(text);
  let message: Message;
  if (endpoint.readBodyField) {
    message = create(endpoint.method.input);
    endpoint.readBodyField(scanner, message);
  } else {
    message = endpoint.readBody(scanner, "");
  }
  scanner.end();
  return message;
}

/** Whether the body has true in the field; looks at the names of the outermost object only. */
function isTrue(text: string, field: DescField): boolean {
  if (!text.includes("true")) return false;
  const scanner = new JsonScanner(text);
  if (scanner.peek() !== "object") return false;
  let found = false;
  scanner.object((name) => {
    if ((name === field.name || name === field.jsonName) && scanner.peek() === "true") found = true;
    scanner.glance();
  });
  return found;
}
