import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { GRPC } from "./grpc.ts";
import { type LastFrame, type RpcFormats, withEncodings } from "./rpc.ts";

/** As gRPC, with the trailers in the body. FramedCall serves the calls. */
export const grpcWeb: RpcFormats = withEncodings(
  { ...GRPC, protocol: "grpc-web", lastFrame: trailersFrame },
  "application/grpc-web+",
);

const OK_TRAILERS: LastFrame = { flags: trailerFlag, content: Buffer.from("grpc-status: 0\r\n") };

function trailersFrame(error: ConnectError | undefined, trailers: Record<string, string> | undefined): LastFrame {
  if (!error && !trailers) return OK_TRAILERS;
  const headers = new Headers(trailers);
  setTrailerStatus(headers, error);
  return { flags: trailerFlag, content: trailerSerialize(headers) };
}
