import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { encodeGrpcMessage, toNodeHeaders } from "../connect/node-headers.ts";

/** The status of a failed call, as headers or trailers of gRPC. */
export function grpcStatusOf(error: ConnectError): Record<string, string> {
  const headers = new Headers();
  setTrailerStatus(headers, error);
  encodeGrpcMessage(headers);
  return toNodeHeaders(headers);
}
