import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { isKnownEncoding, type RpcForm } from "./wire.ts";

/** The form of a request that is served directly: one of the content types that clients send. */
export type DirectForm = RpcForm & {
  /** The content type of the response. */
  readonly contentType: string;
  /** The request header that lists the compressions that the caller reads. */
  readonly acceptHeader: "grpc-accept-encoding" | "connect-accept-encoding" | "accept-encoding";
  readonly timeoutHeader: "grpc-timeout" | "connect-timeout-ms";
  /** Milliseconds; undefined if the header is not valid. */
  readonly timeoutMs: (header: string) => number | undefined;
};

const MS_OF_UNIT: Record<string, number> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** Longer than any call. Node's timers fire at once if they are set to more than 24.8 days. */
const MAX_DEADLINE_MS = 3_600_000;

const GRPC = {
  protocol: "grpc",
  isEnveloped: true,
  encodingHeader: "grpc-encoding",
  acceptHeader: "grpc-accept-encoding",
  timeoutHeader: "grpc-timeout",
  timeoutMs: grpcTimeoutMs,
} as const;
const GRPC_WEB = { ...GRPC, protocol: "grpc-web" } as const;
const CONNECT_UNARY = {
  protocol: "connect",
  isEnveloped: false,
  encodingHeader: "content-encoding",
  acceptHeader: "accept-encoding",
  timeoutHeader: "connect-timeout-ms",
  timeoutMs: connectTimeoutMs,
} as const;
const CONNECT_STREAM = {
  ...CONNECT_UNARY,
  isEnveloped: true,
  encodingHeader: "connect-content-encoding",
  acceptHeader: "connect-accept-encoding",
} as const;

const FORMS: ReadonlyMap<string, DirectForm> = new Map([
  ["application/grpc", { ...GRPC, isJson: false, contentType: "application/grpc+proto" }],
  ["application/grpc+proto", { ...GRPC, isJson: false, contentType: "application/grpc+proto" }],
  ["application/grpc+json", { ...GRPC, isJson: true, contentType: "application/grpc+json" }],
  ["application/grpc-web", { ...GRPC_WEB, isJson: false, contentType: "application/grpc-web+proto" }],
  ["application/grpc-web+proto", { ...GRPC_WEB, isJson: false, contentType: "application/grpc-web+proto" }],
  ["application/grpc-web+json", { ...GRPC_WEB, isJson: true, contentType: "application/grpc-web+json" }],
  ["application/proto", { ...CONNECT_UNARY, isJson: false, contentType: "application/proto" }],
  ["application/json", { ...CONNECT_UNARY, isJson: true, contentType: "application/json" }],
  ["application/json; charset=utf-8", { ...CONNECT_UNARY, isJson: true, contentType: "application/json" }],
  [
    "application/connect+proto",
    { ...CONNECT_STREAM, isJson: false, contentType: "application/connect+proto" },
  ],
  ["application/connect+json", { ...CONNECT_STREAM, isJson: true, contentType: "application/connect+json" }],
]);

/** Undefined if Connect serves the request: a GET, an unknown compression, an invalid header, a rare content type. */
export function directFormOf(
  headers: IncomingHttpHeaders,
  verb: string | undefined,
  { methodKind }: DescMethod,
): DirectForm | undefined {
  const form = verb === "POST" ? FORMS.get(headers["content-type"] ?? "") : undefined;
  if (!form || !isKnownEncoding(headers[form.encodingHeader])) return undefined;
  // Connect has content types of its own for streams.
  if (form.protocol === "connect" && form.isEnveloped !== (methodKind !== "unary")) return undefined;
  const timeout = headers[form.timeoutHeader];
  const isTimeoutValid = timeout === undefined || form.timeoutMs(String(timeout)) !== undefined;
  return isTimeoutValid ? form : undefined;
}

/** The deadline of gRPC and gRPC-Web, at most an hour; undefined if it is not valid. */
export function grpcTimeoutMs(header: string): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(header);
  return match
    ? Math.min(Number(match[1]) * (MS_OF_UNIT[match[2] as string] ?? 0), MAX_DEADLINE_MS)
    : undefined;
}

/** The deadline of Connect, at most an hour; undefined if it is not valid. */
export function connectTimeoutMs(header: string): number | undefined {
  return /^\d{1,10}$/.test(header) ? Math.min(Number(header), MAX_DEADLINE_MS) : undefined;
}
