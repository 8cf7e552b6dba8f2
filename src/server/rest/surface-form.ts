import type { DomainError } from "../../domain/errors.ts";
import type { Surface } from "../../rules/surface.ts";
import { anthropicErrorBody } from "../errors/anthropic-error-body.ts";
import { errorBody, errorObject } from "../errors/rest-error-body.ts";

/** The conventions of one API over REST. */
export type SurfaceForm = {
  /** The headers with the id of the request. */
  readonly requestIdHeaders: readonly string[];
  /** Whether the key can also be in the header `x-api-key`. */
  readonly acceptsKeyHeader: boolean;
  /** Parameters of the query that are ignored: SDKs send them with every call. */
  readonly ignoredParameters: readonly string[];
  /** The body of an error response. */
  readonly errorBody: (error: DomainError, requestId: string) => string;
  /** Whether an event has a name: the field `type` of its message. */
  readonly namesEvents: boolean;
  /** An error after the headers of the stream. `position` is the number of events before it. */
  readonly errorEvent: (error: DomainError, requestId: string, position: number) => string;
  /** Sent when a stream is silent; clients ignore it. */
  readonly keepAlive: string;
  /** Sent after the last event; empty for nothing. */
  readonly end: string;
};

const NATIVE: SurfaceForm = {
  requestIdHeaders: ["x-request-id"],
  acceptsKeyHeader: false,
  ignoredParameters: [],
  errorBody,
  namesEvents: false,
  errorEvent: (error, requestId) => eventText(errorBody(error, requestId)),
  keepAlive: ": keep-alive\n\n",
  end: "data: [DONE]\n\n",
};

const SURFACE_FORMS: Readonly<Record<Surface, SurfaceForm>> = {
  native: NATIVE,
  openai: NATIVE,
  "openai-responses": { ...NATIVE, namesEvents: true, errorEvent: responsesErrorEvent, end: "" },
  anthropic: {
    // Anthropic's SDKs read the request id from the second one.
    requestIdHeaders: ["x-request-id", "request-id"],
    acceptsKeyHeader: false,
    ignoredParameters: ["beta"],
    errorBody: anthropicErrorBody,
    namesEvents: true,
    errorEvent: (error, requestId) => eventText(anthropicErrorBody(error, requestId), "error"),
    keepAlive: eventText('{"type": "ping"}', "ping"),
    end: "",
  },
};

export function formOf(surface: Surface): SurfaceForm {
  return SURFACE_FORMS[surface];
}

/** A server-sent event; JSON has no line breaks. */
export function eventText(json: string, name?: string): string {
  return name === undefined ? `data: ${json}\n\n` : `event: ${name}\ndata: ${json}\n\n`;
}

/** Clients read the error either from the event itself or from its member `error`. */
function responsesErrorEvent(error: DomainError, requestId: string, position: number): string {
  const head = JSON.stringify({
    type: "error",
    sequence_number: position,
    code: error.reason,
    message: error.message,
    param: error.fields[0]?.field ?? null,
  });
  return eventText(`${head.slice(0, -1)},"error":${errorObject(error, requestId)}}`, "error");
}
