import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { isKnownEncoding } from "./compression.ts";
import { connectTimeoutMs, grpcTimeoutMs } from "./deadline-header.ts";
import type { RpcForm } from "./rpc-form.ts";

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
