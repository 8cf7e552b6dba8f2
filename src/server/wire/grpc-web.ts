import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { grpc } from "./grpc.ts";
import type { LastFrame, RpcFormat, RpcFormats } from "./rpc.ts";

const BINARY: RpcFormat = {
  ...grpc.binary,
  protocol: "grpc-web",
  contentType: "application/grpc-web+proto",
  lastFrame: trailersFrame,
};

/** As gRPC, with the trailers in the body. FramedExchange serves the calls. */
export const grpcWeb: RpcFormats = {
  binary: BINARY,
  json: { ...BINARY, isJson: true, contentType: "application/grpc-web+json" },
};

const OK_TRAILERS: LastFrame = { flags: trailerFlag, content: Buffer.from("grpc-status: 0\r\n") };

function trailersFrame(
  error: ConnectError | undefined,
  trailers: Record<string, string> | undefined,
): LastFrame {
  if (!error && !trailers) return OK_TRAILERS;
  const headers = new Headers(trailers);
  setTrailerStatus(headers, error);
  return { flags: trailerFlag, content: trailerSerialize(headers) };
}
