import type { IncomingHttpHeaders } from "node:http";
import type { DescService } from "@bufbuild/protobuf";
import type { DomainError } from "../../domain/errors.ts";
import { basePathOf, type Surface, surfaceOf } from "../../rules/policy.ts";
import { anthropicErrorBody, errorBody, errorObject } from "../errors/http-error.ts";
import { httpBindings } from "./http-rule.ts";

export type RestSurface = {
  readonly requestIdHeaders: readonly string[];
  /** Whether the key can also be in the header `x-api-key`. */
  readonly acceptsKeyHeader: boolean;
  /** Parameters of the query that are ignored: SDKs send them with every call. */
  readonly ignoredParameters: readonly string[];
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

const NATIVE: RestSurface = {
  requestIdHeaders: ["x-request-id"],
  acceptsKeyHeader: false,
  ignoredParameters: [],
  errorBody,
  namesEvents: false,
  errorEvent: (error, requestId) => eventText(errorBody(error, requestId)),
  keepAlive: ": keep-alive\n\n",
  end: "data: [DONE]\n\n",
};

const SURFACES: Readonly<Record<Surface, RestSurface>> = {
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

export function restSurfaceOf(surface: Surface): RestSurface {
  return SURFACES[surface];
}

/** A server-sent event; JSON has no line breaks. */
export function eventText(json: string, name?: string, id?: string): string {
  const head = name === undefined ? "" : `event: ${name}\n`;
  return `${head}${id === undefined ? "" : `id: ${id}\n`}data: ${json}\n\n`;
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

export function basePathsOf(services: readonly DescService[]): string[] {
  return [...new Set(services.map(basePathOf).filter((path) => path !== ""))];
}

/** The surfaces of all paths below the second addresses. There, the key can be in the header `x-api-key`. */
export function surfacesBelow(services: readonly DescService[]): (path: string) => RestSurface | undefined {
  const surfaces = basePathsOf(services).map((above) => {
    const service = services.find((one) => basePathOf(one) === above) as DescService;
    return [above, { ...restSurfaceOf(surfaceOf(service)), acceptsKeyHeader: true }] as const;
  });
  return (path) => surfaces.find(([above]) => isAtOrBelow(path, above))?.[1];
}

/**
 * The format of errors at paths without a route: a call with the header of a service, and a path at or below one of a
 * service, has the format of that service; every other call has the native format.
 */
export function surfacesByPath(
  services: readonly DescService[],
  surfaceBelow: (path: string) => RestSurface | undefined,
): (path: string, headers: IncomingHttpHeaders) => RestSurface {
  const native = restSurfaceOf("native");
  const byPath: (readonly [path: string, form: RestSurface])[] = [];
  const byHeader = new Map<string, RestSurface>();
  for (const service of services) {
    const surface = restSurfaceOf(surfaceOf(service));
    if (surface === native) continue;
    for (const { path, selectedByHeader } of service.methods.flatMap(httpBindings)) {
      // "/v1/messages" of "/v1/messages/{id}" and of "/v1/messages:count".
      if (selectedByHeader === "") byPath.push([path.replace(/\/?[{*:].*$/, ""), surface]);
      else byHeader.set(selectedByHeader, surface);
    }
  }
  return (path, headers) => {
    const [, selected] = [...byHeader].find(([name]) => headers[name] !== undefined) ?? [];
    return surfaceBelow(path) ?? selected ?? byPath.find(([above]) => isAtOrBelow(path, above))?.[1] ?? native;
  };
}

/** Whether the path is `above`, or continues it after "/" or ":". */
export function isAtOrBelow(path: string, above: string): boolean {
  return path.startsWith(above) && /^(?:[/:]|$)/.test(path.slice(above.length, above.length + 1));
}
