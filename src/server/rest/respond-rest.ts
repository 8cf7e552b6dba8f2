import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { CallerDisconnected, KNOWN_ENCODINGS } from "../../codec/body.ts";
import { writeLongLists } from "../../codec/json/writer.ts";
import { RestProblem } from "../../codec/problem.ts";
import { chooseEncoding, compress, type Encoding, isWorthCompressing } from "../compress.ts";
import { toKnownError } from "../errors/known-error.ts";
import type { IncomingCall } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { prefersCsv } from "./csv-response.ts";
import type { RestResponse } from "./rest-response.ts";
import type { Endpoint, RouteMatch } from "./rest-routes.ts";
import { sendEvents } from "./rest-stream.ts";
import { eventText } from "./surface-form.ts";
import { describeUnsupported } from "./unsupported-apis.ts";

/** Sends the result of a unary method; returns a promise if it is printed in turns or compressed first. */
export function respondOnce(
  endpoint: Endpoint,
  result: unknown,
  call: IncomingCall,
  response: RestResponse,
): Promise<void> | undefined {
  const message = toMessage(endpoint.method.output, result);
  const printing = writeLongLists(endpoint.method.output, message);
  if (printing === undefined) return sendMessage(endpoint, message, call, response);
  return printing.then(() => sendMessage(endpoint, message, call, response));
}

function sendMessage(
  endpoint: Endpoint,
  message: Message,
  call: IncomingCall,
  response: RestResponse,
): Promise<void> | undefined {
  const csv = endpoint.csv && prefersCsv(call.headers("accept")) ? endpoint.csv : undefined;
  if (endpoint.csv) response.addVary("accept");
  for (const [name, value] of csv?.headers(message) ?? []) response.setHeader(name, value);
  const text = csv ? csv.text(message) : endpoint.write(message);
  const contentType = csv ? "text/csv; charset=utf-8" : "application/json";
  if (isWorthCompressing(text)) {
    // Also set on uncompressed responses: another caller may get a compressed one.
    response.addVary("accept-encoding");
    const encoding = chooseEncoding(call.headers("accept-encoding").join(","), text);
    if (encoding !== undefined) return sendCompressed(encoding, text, contentType, response);
  }
  response.sendText(200, text, contentType);
  return undefined;
}

async function sendCompressed(
  encoding: Encoding,
  text: string,
  contentType: string,
  response: RestResponse,
): Promise<void> {
  const bytes = await compress(encoding, text);
  response.setHeader("content-encoding", encoding);
  response.sendText(200, bytes, contentType);
}

/** Sends the results of a streaming method. */
export async function respondWithStream(
  endpoint: Endpoint,
  results: unknown,
  call: IncomingCall,
  response: RestResponse,
  keepAliveMs: number,
): Promise<void> {
  const { form, method, write } = endpoint;
  await sendEvents((results as AsyncIterable<unknown>)[Symbol.asyncIterator](), {
    open: () => response.startStream("text/event-stream"),
    event: (value) => {
      const message = toMessage(method.output, value);
      return eventText(write(message), form.namesEvents ? (message as Typed).type : undefined);
    },
    errorEvent: (error, position) => form.errorEvent(toKnownError(error), call.requestId, position),
    keepAlive: form.keepAlive,
    end: form.end,
    keepAliveMs,
    signal: () => response.signal,
  });
}

/** A message whose `type` is the name of its event; `restRoutes` checks that it has the field. */
type Typed = Message & { readonly type: string };

/** OPTIONS lists the verbs of an address. It requires a key; preflights never get here. */
export function respondWithoutRoute(
  verb: string,
  { allowed, elsewhere, correction }: RouteMatch,
  response: RestResponse,
): void {
  if (allowed.length === 0) {
    if (elsewhere && correction === "") throw new RestProblem("invalid", describeUnsupported(elsewhere));
    throw new RestProblem("not_found", `No route matches this path.${correction}`);
  }
  const list = allowed.join(", ");
  if (verb !== "OPTIONS") {
    const message = `This path does not support ${verb}. Use ${list}.`;
    const named = elsewhere ? `${message} ${describeUnsupported(elsewhere)}` : message;
    throw new RestProblem("method_not_allowed", named, { allowed });
  }
  response.setHeader("allow", list);
  response.sendEmpty();
}

/** Sends an error, once; returns the code for the log if the failure itself does not have it. */
export function respondWithError(error: unknown, response: RestResponse, observation: Observation): Code | 0 {
  if (error instanceof CallerDisconnected) return Code.Canceled;
  const known = toKnownError(error);
  observation.setFailure(error instanceof RestProblem ? known : error);
  if (error instanceof RestProblem) {
    if (error.allowed.length > 0) response.setHeader("allow", error.allowed.join(", "));
    if (error.kind === "unsupported_media_type") response.setHeader("accept-encoding", KNOWN_ENCODINGS);
  }
  response.sendError(known);
  return 0;
}

function toMessage(desc: DescMessage, value: unknown): Message {
  return create(desc, value as never);
}
