import type { IncomingHttpHeaders } from "node:http";
import { connectStream, connectUnary } from "./connect.ts";
import { grpc } from "./grpc.ts";
import { grpcWeb } from "./grpc-web.ts";
import { isKnownEncoding, type RpcFormat, type RpcFormats } from "./rpc.ts";

/** The content types that clients send. */
const FORMATS: ReadonlyMap<string, RpcFormat> = new Map([
  ["application/grpc", grpc.proto],
  ["application/grpc+proto", grpc.proto],
  ["application/grpc+json", grpc.json],
  ["application/grpc-web", grpcWeb.proto],
  ["application/grpc-web+proto", grpcWeb.proto],
  ["application/grpc-web+json", grpcWeb.json],
  ["application/proto", connectUnary.proto],
  ["application/json", connectUnary.json],
  ["application/json; charset=utf-8", connectUnary.json],
  ["application/connect+proto", connectStream.proto],
  ["application/connect+json", connectStream.json],
]);

/** Undefined if Connect serves the request: a GET, an unknown compression, a rare content type. */
export function commonFormatOf(headers: IncomingHttpHeaders, verb: string | undefined, isStream: boolean): RpcFormat | undefined {
  const format = verb === "POST" ? FORMATS.get(headers["content-type"] ?? "") : undefined;
  if (!format || !isKnownEncoding(headers[format.encodingHeader])) return undefined;
  // Connect has content types of its own for streams.
  return format.protocol === "connect" && format.isEnveloped !== isStream ? undefined : format;
}

/** The format of any request, by the start of its content type. */
export function formatOf(headers: IncomingHttpHeaders): RpcFormat {
  const type = (headers["content-type"] ?? "").toLowerCase();
  return formatsOf(type)[/^[^;]*json/.test(type) ? "json" : "proto"];
}

function formatsOf(type: string): RpcFormats {
  if (type.startsWith("application/grpc-web")) return grpcWeb;
  if (type.startsWith("application/grpc")) return grpc;
  return type.startsWith("application/connect") ? connectStream : connectUnary;
}
